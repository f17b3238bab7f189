"""The barriers that come with atomics on scalars: Triton hands a result to all threads through one (see `memory_model`)."""

from __future__ import annotations

from dataclasses import replace

from racefree.graph.program import Access, Assume, Barrier, Data, Program, Statement, Value, rebuilt, walk
from racefree.proof.footprint.slicing import deciders, flows


def with_result_barriers(program: Program) -> Program:
    """The same program with a barrier behind every atomic on a scalar whose result is used; itself if there is none.

    Used is what an access, a branch, a loop, a print or `tl.assume` depends on: Triton drops the result of any other.
    """
    used = _used(program)
    if not any(_handed_on(statement, used) for statement in walk(program.body)):
        return program

    def with_barrier(statement: Statement) -> tuple[Statement, ...]:
        if not _handed_on(statement, used):
            return (statement,)
        return statement, Barrier(global_read=True, global_write=True, site=statement.site)

    return replace(program, body=rebuilt(program.body, with_barrier))


def _handed_on(statement: Statement, used: frozenset[int]) -> bool:
    if not isinstance(statement, Access) or not statement.kind.atomic or statement.shape != ():
        return False
    return statement.result is not None and statement.result.index in used


def _used(program: Program) -> frozenset[int]:
    """The values (by index) that a statement depends on which does more than make values."""
    sources: dict[int, list[Value]] = {}
    waiting: list[Value] = []
    for statement in walk(program.body):
        for result, origin in flows(statement):
            sources.setdefault(result.index, []).extend(origin)
        waiting += _depends_on(statement)
    used: set[int] = set()
    while waiting:
        value = waiting.pop()
        if value.index not in used:
            used.add(value.index)
            waiting += sources.get(value.index, ())
    return frozenset(used)


def _depends_on(statement: Statement) -> tuple[Value, ...]:
    match statement:
        case Access():
            parts = (statement.pointer, statement.mask, *statement.operands)
            return tuple(value for value in parts if value is not None)
        case Assume():
            return (statement.condition,)
        case Data(results=()):
            return statement.operands
        case _:
            return deciders(statement)
