"""Which values decide where a program instance goes and what its atomics do; all others are only data."""

from __future__ import annotations

from dataclasses import dataclass

from racefree.access import Kind
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Access, For, Guard, If, Int, Op, Program, Statement, Value, While, accesses, walk
from racefree.proof.footprint.slicing import flows
from racefree.proof.replay.memory import launch_memory, pointer_roots, storages_of


@dataclass(frozen=True, slots=True)
class Relevance:
    """`values` (by index) are computed; `synchronising` accesses (by index) are executed one at a time: atomics on one
    element, and plain loads of one element whose value decides something. What the accesses in `valued` write is computed too.

    Where no such value decides anything, atomics order nothing that another execution does not leave unordered,
    so `synchronising` is empty.
    """

    values: frozenset[int]
    synchronising: frozenset[int]
    valued: frozenset[int]


def scalar_atomic(access: Access) -> bool:
    """True for an atomic on one integer element, done once per program instance."""
    return access.kind.atomic and access.shape == () and isinstance(access.operands[0].element, Int)


def relevance(program: Program) -> Relevance:
    everything = accesses(program)
    changing = _changing_reads(program)
    reads: frozenset[int] = frozenset()
    while True:
        valued = _valued(program, reads)
        values = _slice(program, valued)
        deciding = frozenset(a.index for a in everything if a.result is not None and a.result.index in values)
        if deciding & changing == reads:
            break
        reads = deciding & changing
    observed = any(a.index in deciding for a in everything if a.kind.atomic or a.index in reads)
    steps = frozenset(a.index for a in everything if scalar_atomic(a)) | reads
    return Relevance(values, steps if observed else frozenset(), valued)


def _changing_reads(program: Program) -> frozenset[int]:
    """Plain loads of one integer (by index) through a pointer that something may be written through."""
    everything = accesses(program)
    roots = pointer_roots(program)
    written = [roots[a.index] for a in everything if a.kind.writes]
    return frozenset(
        a.index
        for a in everything
        if a.kind is Kind.LOAD
        and a.shape == ()
        and a.result is not None
        and isinstance(a.result.element, Int)
        and any(_may_meet(roots[a.index], other) for other in written)
    )


def _may_meet(a: frozenset[str] | None, b: frozenset[str] | None) -> bool:
    return a is None or b is None or not a.isdisjoint(b)


def _valued(program: Program, reads: frozenset[int]) -> frozenset[int]:
    """Scalar integer atomics, and scalar integer stores that such an atomic, or one of the loads in `reads`, may see."""
    everything = accesses(program)
    roots = pointer_roots(program)
    atomics = [a for a in everything if scalar_atomic(a)]
    names = [roots[a.index] for a in atomics] + [roots[index] for index in sorted(reads)]
    out = {a.index for a in atomics}
    for access in everything:
        if access.kind is Kind.STORE and access.shape == () and isinstance(access.operands[0].element, Int):
            mine = roots[access.index]
            if any(_may_meet(mine, other) for other in names):
                out.add(access.index)
    return frozenset(out)


def may_race(program: Program, facts: LaunchFacts) -> frozenset[int]:
    """The accesses (by index) that may touch a storage some access writes."""
    memory = launch_memory(program, facts)
    quiet = {s.address for s, changing in zip(memory.storages, memory.changing, strict=True) if changing is None}
    roots = pointer_roots(program)
    out = set()
    for access in accesses(program):
        names = roots[access.index]
        own = {k: v for k, v in facts.arguments.items() if names is not None and k in names}
        held = storages_of(LaunchFacts(facts.kernel, facts.grid, own))
        if names is None or access.kind.writes or any(s.address not in quiet for s in held):
            out.add(access.index)
    return frozenset(out)


def stale_readers(program: Program) -> frozenset[int]:
    """The atomics (by index) that may be done by a plain read: a failing swap, an update known to change nothing."""
    constants = {
        s.results[0].index: s.attributes.get("value")
        for s in walk(program.body)
        if isinstance(s, Op) and s.name == "arith.constant"
    }
    out = set()
    for access in accesses(program):
        identity = access.kind is Kind.RMW and access.rmw in ("add", "or", "xor")
        if access.kind is Kind.CAS or (identity and constants.get(access.operands[0].index) == 0):
            out.add(access.index)
    return frozenset(out)


def _slice(program: Program, valued: frozenset[int]) -> frozenset[int]:
    sources: dict[int, list[Value]] = {}
    start: list[Value] = []
    for statement in walk(program.body):
        for result, origin in flows(statement):
            sources.setdefault(result.index, []).extend(_needed_for(statement, origin))
        start.extend(_deciding(statement, valued))
    needed: set[int] = set()
    while start:
        value = start.pop()
        if value.index not in needed:
            needed.add(value.index)
            start.extend(sources.get(value.index, ()))
    return frozenset(needed)


def _needed_for(statement: Statement, origin: tuple[Value, ...]) -> tuple[Value, ...]:
    """What a result is computed from; a load's value is read from memory, so only its `other` counts beside the address."""
    if isinstance(statement, Access) and statement.kind is Kind.LOAD:
        return tuple(v for v in (statement.pointer, statement.mask, statement.other) if v is not None)
    return origin


def _deciding(statement: Statement, valued: frozenset[int]) -> tuple[Value, ...]:
    match statement:
        case Access():
            parts = (statement.pointer,) if statement.mask is None else (statement.pointer, statement.mask)
            return parts + (statement.operands if statement.index in valued else ())
        case Guard() | If() | While():
            return (statement.condition,)
        case For():
            return (statement.lower, statement.upper, statement.step)
        case _:
            return ()
