"""What has to be run to check a verdict, and whether what the run saw can be reconciled with it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from racefree.eager.meetings import Meeting, meetings
from racefree.eager.trace import Event, Pid, Trace
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program, accesses
from racefree.proof.confirm import CONFIRMED
from racefree.verdict import (
    ASSUMES_IN_BOUNDS,
    CompiledRaceRecord,
    RaceAccess,
    RaceConfigVerdict,
    Replay,
    ReplayOutcome,
    Status,
)

MAX_RACES = 16
"""Races of one launch that are looked for."""

MAX_ORDERS = 4


@dataclass(frozen=True, slots=True)
class Plan:
    """The instances to run, in one order after the other until a run agrees.

    `taking_turns` at their atomics, for those may wait for one another; else each from the memory that the launch found.
    """

    orders: tuple[tuple[Pid, ...], ...]
    taking_turns: bool


def plan(verdict: RaceConfigVerdict, program: Program, facts: LaunchFacts, *, most: int) -> Plan | Replay:
    """What to run for a verdict that claims something, of at most `most` instances; or why that cannot be done."""
    size = prod(facts.grid)
    atomics = any(access.kind.atomic for access in accesses(program))
    if verdict.status is Status.OK:
        if size > most:
            return not_replayed(f"the grid has {size} program instances, and at most {most} are run")
        return Plan((_grid(facts.grid),), atomics)
    for race in verdict.races:
        for pid in race.programs:
            if not all(0 <= at < extent for at, extent in zip(pid, facts.grid, strict=True)):
                reason = f"{_claimed(race)}, but program {pid} is none of the grid {facts.grid}"
                return Replay(ReplayOutcome.DISAGREES, 0, reason)
    named = tuple(dict.fromkeys(pid for race in verdict.races[:MAX_RACES] for pid in race.programs))
    if not atomics:
        return Plan((named,), taking_turns=False)
    every = _grid(facts.grid) if size <= most else named
    # Which instance does what is often a matter of which comes last.
    last = [(*(p for p in every if p != pid), pid) for pid in named[:MAX_ORDERS]]
    return Plan(tuple(dict.fromkeys((every, *last))), taking_turns=True)


def not_replayed(reason: str) -> Replay:
    return Replay(ReplayOutcome.NOT_REPLAYED, 0, reason)


def judge(verdict: RaceConfigVerdict, program: Program, runs: Sequence[Trace], shifts: Mapping[str, int]) -> Replay:
    """Whether the runs made so far agree. Raises `TooMuch` when one has seen more than can be compared.

    `shifts` says by tensor how many bytes further it lay in the runs than where the verdict takes it to lie.
    """
    if verdict.status is Status.OK:
        return _judge_proof(verdict, program, runs[-1])
    return _judge_races(verdict, program, runs, shifts)


def _judge_proof(verdict: RaceConfigVerdict, program: Program, trace: Trace) -> Replay:
    made = {_line(a.site.file, a.site.line) for a in accesses(program) if not a.kind.writes}
    places = {index: place for place, index in trace.places.items()}
    # Triton drops loads that nothing uses, which the interpreter makes all the same.
    kept = [e for e in trace.events if e.kind.writes or _line(*places[e.place][:2]) in made]
    found = meetings(trace.keeping(kept), most=1)
    if not found:
        return Replay(ReplayOutcome.AGREES, len(trace.programs))
    met = _said(found[0], trace)
    if ASSUMES_IN_BOUNDS in verdict.qualifiers:
        return not_replayed(f"the proof leaves accesses outside their tensors aside, and the run has some: {met}")
    claim = f"proved race-free by {verdict.rung} for {verdict.scope.value if verdict.scope else 'this launch'}"
    return _disagrees(trace, f"{claim}, but in Triton's interpreter {met}")


def _judge_races(
    verdict: RaceConfigVerdict, program: Program, runs: Sequence[Trace], shifts: Mapping[str, int]
) -> Replay:
    doubtful = any(access.kind.atomic for access in accesses(program))
    for race in verdict.races[:MAX_RACES]:
        sides = race.first, race.second
        if any(side.address_bytes is None or side.tensor not in shifts for side in sides):
            return not_replayed(f"{_claimed(race)}, but one of the addresses is not known")
        if not _meet(race, shifts):
            return _disagrees(runs[-1], f"{_claimed(race)}, but the two accesses share no byte")
        missing = [_missing(race, trace, shifts) for trace in runs]
        if all(missing):
            if race.witness != CONFIRMED or doubtful:
                return not_replayed(f"the race may depend on a schedule or on values of its own: {missing[-1]}")
            return _disagrees(runs[-1], f"{_claimed(race)}, but in Triton's interpreter {missing[-1]}")
    return Replay(ReplayOutcome.AGREES, len(runs[-1].programs))


def _missing(race: CompiledRaceRecord, trace: Trace, shifts: Mapping[str, int]) -> str:
    """Which of the two accesses the run has not seen, "" if it has seen both."""
    for access, pid in zip((race.first, race.second), race.programs, strict=True):
        if not _seen(access, pid, trace, (access.address_bytes or 0) + shifts[access.tensor]):
            return f"program {pid} makes no such {access.op} at {access.source[0]}:{access.source[1]}"
    return ""


def _disagrees(trace: Trace, reason: str) -> Replay:
    return Replay(ReplayOutcome.DISAGREES, len(trace.programs), reason)


def _seen(access: RaceAccess, pid: Pid, trace: Trace, address: int) -> bool:
    return any(
        trace.programs[event.program] == pid
        and event.kind.writes == access.write
        and event.kind.atomic == access.atomic
        and event.element_bytes == access.element_bytes
        and bool((event.addresses == address).any())
        for event in trace.events
    )


def _meet(race: CompiledRaceRecord, shifts: Mapping[str, int]) -> bool:
    first, second = race.first, race.second
    here, there = ((side.address_bytes or 0) + shifts[side.tensor] for side in (first, second))
    apart = there - here
    return -(second.element_bytes or 1) < apart < (first.element_bytes or 1) and (first.write or second.write)


def _claimed(race: CompiledRaceRecord) -> str:
    both = zip((race.first, race.second), race.programs, strict=True)
    sides = (f"the {a.op} at {a.source[0]}:{a.source[1]} by program {program}" for a, program in both)
    return f"a race of {' and '.join(sides)} was reported"


def _said(meeting: Meeting, trace: Trace) -> str:
    return f"{_side(meeting.first, trace)} and {_side(meeting.second, trace)} meet on the byte {meeting.address:#x}, unordered"


def _side(event: Event, trace: Trace) -> str:
    file, line, _ = trace.place(event.place)
    return f"the {event.kind.value} at {file}:{line} by program {trace.programs[event.program]}"


def _line(file: str, line: int) -> tuple[str, int]:
    return os.path.realpath(file), line


def _grid(grid: tuple[int, int, int]) -> tuple[Pid, ...]:
    x, y, z = grid
    return tuple((i, j, k) for i in range(x) for j in range(y) for k in range(z))
