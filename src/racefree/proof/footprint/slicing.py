"""Which accesses can take part in a race at all, and which values decide where they go."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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
    Ptr,
    Statement,
    Value,
    While,
    children,
    walk,
)

ANYWHERE = -1
"""The root of a pointer made from an integer: it may point into any storage."""


@dataclass(frozen=True, slots=True)
class Slice:
    """What a rung has to evaluate: the accesses that matter (by index) and the values that decide them."""

    relevant: frozenset[int]
    values: frozenset[int]
    roots: Mapping[int, frozenset[int]]
    from_addresses: frozenset[int]
    """The integers that depend on the address of a pointer."""


def flows(statement: Statement) -> list[tuple[Value, tuple[Value, ...]]]:
    """(value, the values it is computed from) for what a statement itself defines, control decisions included."""
    match statement:
        case Op() | Data():
            return [(r, statement.operands) for r in statement.results]
        case Access():
            sources = (statement.pointer, *statement.operands)
            sources += tuple(v for v in (statement.mask, statement.other) if v is not None)
            return [] if statement.result is None else [(statement.result, sources)]
        case If():
            yields = zip(statement.results, statement.then_yields, statement.else_yields, strict=True)
            return [(r, (t, e, statement.condition)) for r, t, e in yields]
        case For():
            bounds = (statement.lower, statement.upper, statement.step)
            out: list[tuple[Value, tuple[Value, ...]]] = [(statement.induction, bounds)]
            for carried, init, last, result in zip(
                statement.carried, statement.inits, statement.yields, statement.results, strict=True
            ):
                out += [(carried, (init, last, *bounds)), (result, (init, last, carried, *bounds))]
            return out
        case While():
            out = [
                (arg, (init, last, statement.condition))
                for arg, init, last in zip(statement.before_args, statement.inits, statement.after_yields, strict=True)
            ]
            for arg, result, source in zip(statement.after_args, statement.results, statement.forwarded, strict=True):
                out += [(arg, (source, statement.condition)), (result, (source, statement.condition))]
            return out
        case Barrier() | Assume() | Guard():
            return []


def pointer_roots(program: Program) -> dict[int, frozenset[int]]:
    """For each pointer value, the parameters (their position) it may be derived from, or ANYWHERE."""
    roots: dict[int, frozenset[int]] = {}
    for position, parameter in enumerate(program.parameters):
        if isinstance(parameter.value.element, Ptr):
            roots[parameter.value.index] = frozenset((position,))
    edges = [(r, s) for statement in walk(program.body) for r, s in flows(statement) if isinstance(r.element, Ptr)]
    loose = {r.index for r in _loose_pointers(program)}
    changed = True
    while changed:
        changed = False
        for result, sources in edges:
            found = roots.get(result.index, frozenset())
            grown = found.union(*(roots.get(s.index, frozenset()) for s in sources if isinstance(s.element, Ptr)))
            if result.index in loose:
                grown |= {ANYWHERE}
            if grown != found:
                roots[result.index] = grown
                changed = True
    return roots


def _loose_pointers(program: Program) -> list[Value]:
    """Pointers that appear from something that is no pointer: an integer, an unknown operation, a loaded value.

    So does one that is moved by an amount computed from an address: it may leave its tensor for another.
    """
    from_addresses = computed_from_addresses(program)
    out: list[Value] = []
    for statement in walk(program.body):
        match statement:
            case Access() if statement.result is not None and isinstance(statement.result.element, Ptr):
                out.append(statement.result)
            case Data():
                out.extend(statement.results)
            case Op() if not any(isinstance(o.element, Ptr) for o in statement.operands):
                out.extend(statement.results)
            case Op() if any(o.index in from_addresses for o in statement.operands):
                out.extend(statement.results)
            case _:
                pass
    return out


def computed_from_addresses(program: Program, *, apart_from: frozenset[int] = frozenset()) -> frozenset[int]:
    """The integers that depend on the address of a pointer, other than through those of `apart_from`."""
    found = {r.index for s in walk(program.body) if isinstance(s, Op) and s.name == "tt.ptr_to_int" for r in s.results}
    if not found:
        return frozenset()
    edges = [(r, o) for s in walk(program.body) for r, o in flows(s) if not isinstance(r.element, Ptr)]
    changed = True
    while changed:
        changed = False
        for result, sources in edges:
            new = result.index not in found and result.index not in apart_from
            if new and any(o.index in found for o in sources):
                found.add(result.index)
                changed = True
    return frozenset(found)


def needed_values(program: Program, relevant: frozenset[int]) -> frozenset[int]:
    """Everything that decides the address, mask, path or iteration of a relevant access, or the path of a barrier."""
    sources: dict[int, tuple[Value, ...]] = {}
    decisions: dict[int, tuple[Value, ...]] = {}
    start: list[Value] = []

    def visit(body: tuple[Statement, ...], around: tuple[Value, ...]) -> None:
        for statement in body:
            for result, origin in flows(statement):
                sources[result.index] = origin
                decisions[result.index] = around
            match statement:
                case Access() if statement.index in relevant:
                    start.extend((statement.pointer, *around))
                    if statement.mask is not None:
                        start.append(statement.mask)
                case Barrier() if statement.global_read and statement.global_write:
                    start.extend(around)
            inner = around + deciders(statement)
            for nested in children(statement):
                visit(nested, inner)

    visit(program.body, ())
    needed: set[int] = set()
    while start:
        value = start.pop()
        if value.index in needed:
            continue
        needed.add(value.index)
        start.extend(sources.get(value.index, ()))
        start.extend(decisions.get(value.index, ()))
    return frozenset(needed)


def deciders(statement: Statement) -> tuple[Value, ...]:
    """The values that decide whether and how often the bodies of a statement run."""
    match statement:
        case Guard() | If() | While():
            return (statement.condition,)
        case For():
            return (statement.lower, statement.upper, statement.step)
        case _:
            return ()
