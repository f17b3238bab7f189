"""The barriers that come with atomics on scalars: Triton hands a result to all threads through one (see `memory_model`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import assert_never

from racefree.graph.program import (
    Access,
    Assume,
    Barrier,
    Data,
    For,
    Guard,
    If,
    Op,
    Program,
    Statement,
    Value,
    While,
    walk,
)
from racefree.proof.footprint.slicing import deciders, flows


def with_result_barriers(program: Program) -> Program:
    """The same program with a barrier behind every atomic on a scalar whose result is used; itself if there is none.

    Used is what an access, a branch or a loop depends on: Triton drops the result of any other.
    """
    used = _used(program)
    if not any(_handed_on(statement, used) for statement in walk(program.body)):
        return program
    return replace(program, body=_body(program.body, used))


def _handed_on(statement: Statement, used: frozenset[int]) -> bool:
    if not isinstance(statement, Access) or not statement.kind.atomic or statement.shape != ():
        return False
    return statement.result is not None and statement.result.index in used


def _used(program: Program) -> frozenset[int]:
    """The values (by index) that an access, a branch or a loop depends on."""
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
    if not isinstance(statement, Access):
        return deciders(statement)
    parts = (statement.pointer, statement.mask, *statement.operands)
    return tuple(value for value in parts if value is not None)


def _body(body: tuple[Statement, ...], used: frozenset[int]) -> tuple[Statement, ...]:
    return tuple(each for statement in body for each in _with_barrier(statement, used))


def _with_barrier(statement: Statement, used: frozenset[int]) -> Iterator[Statement]:
    match statement:
        case Guard() | For():
            yield replace(statement, body=_body(statement.body, used))
        case If():
            then_body, else_body = _body(statement.then_body, used), _body(statement.else_body, used)
            yield replace(statement, then_body=then_body, else_body=else_body)
        case While():
            yield replace(statement, before=_body(statement.before, used), after=_body(statement.after, used))
        case Op() | Data() | Access() | Assume() | Barrier():
            yield statement
            if _handed_on(statement, used):
                yield Barrier(global_read=True, global_write=True, site=statement.site)
        case _:
            assert_never(statement)
