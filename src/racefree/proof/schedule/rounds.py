"""Says in which rounds of its `while` loops a race happens: interleavings do not count them, so that waiting ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Access, For, Program, Statement, While, children
from racefree.proof.confirm import executions
from racefree.proof.outcome import Side, Witness
from racefree.proof.replay import Event, Unreplayable, launch_memory

Loops = tuple[bool, ...]
"""The loops around an access, outermost first: whether each is a `while`."""


def in_rounds(program: Program, facts: LaunchFacts, witness: Witness) -> Witness:
    """The witness with rounds counted as plain evaluation counts them; as it was where that cannot be told.

    Between two instances the last round that the schedule gets to is meant: whatever orders it orders those before.
    Inside one, the first two rounds with no barrier in between.
    """
    loops = dict(_loops(program.body, ()))
    sides = witness.first, witness.second
    if not any(any(loops[s.access.index]) for s in sides):
        return witness
    first, second = (_matching(program, facts, witness, s, loops[s.access.index]) for s in sides)
    if not first or not second:
        return witness
    chosen: tuple[Event, Event] | None = first[-1], second[-1]
    if sides[0].program == sides[1].program:
        pairs = ((a, b) for a in first for b in second if a.order < b.order and a.epoch == b.epoch)
        chosen = next(pairs, None)
    if chosen is None:
        return witness
    one, other = (replace(s, iterations=e.iterations) for s, e in zip(sides, chosen, strict=True))
    return replace(witness, first=one, second=other)


def _matching(program: Program, facts: LaunchFacts, witness: Witness, side: Side, loops: Loops) -> list[Event]:
    """The executions that a side can mean, in program order, as far as evaluation gets."""
    found: list[Event] = []
    memory = launch_memory(program, facts)
    try:
        for event in executions(program, facts, witness, side, memory, only_scheduled=True):
            if event.index == side.access.index and _means(side, event, loops):
                found.append(event)
    except Unreplayable:
        pass
    return found


def _means(side: Side, event: Event, loops: Loops) -> bool:
    counted = zip(side.iterations, event.iterations, loops, strict=True)
    return (
        bool(event.active[side.lane])
        and int(event.addresses[side.lane]) == side.address_bytes
        and all(mine == its for mine, its, waits in counted if not waits)
    )


def _loops(body: tuple[Statement, ...], around: Loops) -> Iterator[tuple[int, Loops]]:
    for statement in body:
        if isinstance(statement, Access):
            yield statement.index, around
        inside = (*around, isinstance(statement, While)) if isinstance(statement, For | While) else around
        for part in children(statement):
            yield from _loops(part, inside)
