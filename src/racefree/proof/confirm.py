"""Checks a race that a rung found by evaluating both executions with plain integers, from the launch alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from racefree.access import Kind
from racefree.errors import Refused
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Int, Program, accesses
from racefree.proof.outcome import Pid, Side, Witness
from racefree.proof.replay import Event, Lanes, Memory, Options, Unreplayable, drive, launch_memory, steps
from racefree.proof.replay.lanes import constant, unknown
from racefree.proof.replay.memory import untouched_memory

CONFIRMED = "confirmed"
MAX_STEPS = 200_000
"""Accesses, barriers and iterations one program instance may take before its replay is given up."""


def confirm(program: Program, facts: LaunchFacts, witness: Witness) -> str:
    """ "confirmed", or "solver witness: ..." with the reason why plain evaluation cannot tell.

    Raises `Refused` ("internal-error") when plain evaluation contradicts the rung: then neither is to be trusted.
    """
    memory = untouched_memory(facts) if witness.early else launch_memory(program, facts)
    spans: list[tuple[int, int]] = []
    try:
        for side in (witness.first, witness.second):
            event = _event(program, facts, witness, side, memory)
            if event is None or not bool(event.active[side.lane]):
                raise _contradiction(side, "plain evaluation does not reach this access")
            start = int(event.addresses[side.lane])
            spans.append((start, start + side.access.element_bytes))
    except Unreplayable as unknown:
        return f"solver witness: {unknown.reason}"
    first, second = spans
    if first[0] >= second[1] or second[0] >= first[1]:
        raise _contradiction(witness.second, "plain evaluation puts the two accesses on different bytes")
    if not (witness.first.access.kind.writes or witness.second.access.kind.writes):
        raise _contradiction(witness.second, "neither access writes")
    return CONFIRMED


def _contradiction(side: Side, reason: str) -> Refused:
    return Refused(
        "internal-error", f"a race was found that its check contradicts: {reason}; please report it", side.access.site
    )


def _event(program: Program, facts: LaunchFacts, witness: Witness, side: Side, memory: Memory) -> Event | None:
    """The execution a witness names, reached with the values that its schedule observed."""
    for event in executions(program, facts, witness, side, memory):
        if event.index == side.access.index and event.iterations == side.iterations:
            return event
    return None


def executions(
    program: Program, facts: LaunchFacts, witness: Witness, side: Side, memory: Memory, *, only_scheduled: bool = False
) -> Iterator[Event]:
    """What the instance of one side executes, with the values that the schedule of the witness observed.

    `only_scheduled` ends before an atomic that the schedule does not get to. Raises `Unreplayable` where a value is needed
    that is not known.
    """
    others = frozenset(a.index for a in accesses(program) if a.index != side.access.index)
    options = Options(may_be_unknown=others, max_steps=MAX_STEPS)
    seen = _observations(witness, side.program)
    changing = launch_memory(program, facts) if witness.early else memory
    stepped = frozenset(access for _, access, _ in witness.schedule) if only_scheduled else frozenset()

    def observe(event: Event) -> Lanes | None:
        if witness.early and event.access.kind is Kind.LOAD and event.index not in witness.early:
            return None if _stays(event, changing) else unknown(event.access.shape)
        if not seen or seen[0][0] != event.index:
            return None
        value = seen.popleft()[1]
        result = event.access.result
        if value is None or result is None or not isinstance(result.element, Int):
            return None
        return constant(value, result)

    for event in drive(steps(program, facts, side.program, memory, options), observe):
        if not seen and event.index in stepped:
            return
        yield event


def _stays(event: Event, memory: Memory) -> bool:
    """Whether nothing that a load reads is changed by the launch."""
    result = event.access.result
    assert result is not None
    found = memory.read(event.addresses, event.active, event.access.element_bytes, result.element)
    return bool(found.known[event.active].all())


def _observations(witness: Witness, program: Pid) -> deque[tuple[int, int | None]]:
    return deque((access, value) for who, access, value in witness.schedule if who == program)
