"""A program with its loops run a fixed number of times: steps in document order, and the order facts between steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.engines.program import I32, I64, U8, DependencyKind, EngineProgram, InstructionFlag, Loop
from racefree.errors import Refused

NEVER = np.int32(2**31 - 1)
"""A position no timeline reaches."""


@dataclass(frozen=True, slots=True, eq=False)
class Ragged:
    """Row r owns `values[starts[r]:starts[r + 1]]`."""

    starts: I64
    values: I32


@dataclass(frozen=True, slots=True, eq=False)
class Timelines:
    """One step for each execution of an instruction; step numbers follow the document, iterations spelled out.

    `instruction`, `iteration` (from 0; 0 outside loops), `loop` (-1 outside), `engine` and `position` (index on the engine's
    timeline) have one row a step; `streams` lists the steps of each engine. `previous` and `following` are the neighbours
    on the engine, or -1. Row i of `edge_*` is a dependency between steps; `edge_issue[i]` is 1 when it leaves the start of
    its source. `group` is the rendezvous of a step, or -1.
    """

    program: EngineProgram
    trips: tuple[int, ...]
    instruction: I32
    iteration: I32
    loop: I32
    engine: I32
    position: I32
    streams: Ragged
    previous: I32
    following: I32
    asynchronous: U8
    edge_source: I32
    edge_target: I32
    edge_issue: U8
    group: I32
    group_size: I32

    def __len__(self) -> int:
        return len(self.instruction)

    def distance(self, first: npt.NDArray[np.integer], second: npt.NDArray[np.integer]) -> I64:
        """Iterations from first to second steps of one loop; 0 where they are not of one loop."""
        together = (self.loop[first] == self.loop[second]) & (self.loop[first] >= 0)
        return np.where(together, self.iteration[second] - self.iteration[first], 0).astype(np.int64)


@dataclass(frozen=True, slots=True)
class _Placement:
    """Where iteration t of instruction i stands: `base[i] + t * period[i]`, for 0 <= t < trips[i]; `loop[i]` is -1 outside."""

    base: I64
    period: I64
    trips: I64
    loop: I32
    order: I32
    iteration: I32


def unroll(program: EngineProgram, trips: Sequence[int] = ()) -> Timelines:
    """The steps of a program when loop number l runs `trips[l]` times. Raises Refused for nested or overlapping loops."""
    place = _place(program, trips)
    instruction = place.order
    count, engines = len(instruction), len(program.engines)
    engine = program.instructions.engine[instruction]
    # Sixteen bits sort by radix, in linear time.
    by_engine = np.argsort(engine.astype(np.int16), kind="stable").astype(np.int32)
    starts = np.concatenate([[0], np.cumsum(np.bincount(engine, minlength=engines))]).astype(np.int64)
    position = np.empty(count, dtype=np.int32)
    position[by_engine] = (np.arange(count) - np.repeat(starts[:-1], np.diff(starts))).astype(np.int32)
    previous, following = _neighbours(by_engine, position, engine, starts)
    edge_source, edge_target, edge_issue = _edges(program, place)
    group, group_size = _groups(program, place, count)
    flags = program.instructions.flags[instruction]
    return Timelines(
        program=program,
        trips=tuple(trips),
        instruction=instruction,
        iteration=place.iteration,
        loop=place.loop[instruction],
        engine=engine,
        position=position,
        streams=Ragged(starts, by_engine),
        previous=previous,
        following=following,
        asynchronous=((flags & np.uint8(InstructionFlag.ASYNC)) != 0).astype(np.uint8),
        edge_source=edge_source,
        edge_target=edge_target,
        edge_issue=edge_issue,
        group=group,
        group_size=group_size,
    )


def _place(program: EngineProgram, trips: Sequence[int]) -> _Placement:
    count = len(program)
    loop_of = np.full(count, -1, dtype=np.int32)
    spans = [(program.blocks[loop.first].first, program.blocks[loop.last - 1].last) for loop in program.loops]
    for number, (first, last) in enumerate(spans):
        if (loop_of[first:last] >= 0).any():
            raise Refused(
                "nested-loop", "loops inside loops are not unrolled: check the program with inner loops unrolled"
            )
        loop_of[first:last] = number
    base = np.zeros(count, dtype=np.int64)
    period = np.zeros(count, dtype=np.int64)
    times = np.ones(count, dtype=np.int64)
    pieces: list[npt.NDArray[np.int64]] = []
    iterations: list[npt.NDArray[np.int64]] = []
    at = step = 0
    for number in sorted(range(len(spans)), key=lambda n: spans[n][0]):
        first, last = spans[number]
        step += _straight(at, first, step, base, pieces, iterations)
        length, runs = last - first, trips[number]
        base[first:last] = step + np.arange(length)
        period[first:last], times[first:last] = length, runs
        pieces.append(np.tile(np.arange(first, last), runs))
        iterations.append(np.repeat(np.arange(runs), length))
        step += length * runs
        at = last
    _straight(at, count, step, base, pieces, iterations)
    order = np.concatenate(pieces).astype(np.int32) if pieces else np.zeros(0, dtype=np.int32)
    iteration = np.concatenate(iterations).astype(np.int32) if iterations else np.zeros(0, dtype=np.int32)
    return _Placement(base, period, times, loop_of, order, iteration)


def _straight(
    first: int,
    last: int,
    step: int,
    base: I64,
    pieces: list[npt.NDArray[np.int64]],
    iterations: list[npt.NDArray[np.int64]],
) -> int:
    base[first:last] = step + np.arange(last - first)
    pieces.append(np.arange(first, last))
    iterations.append(np.zeros(last - first, dtype=np.int64))
    return last - first


def _neighbours(by_engine: I32, position: I32, engine: I32, starts: I64) -> tuple[I32, I32]:
    previous = np.full(len(position), -1, dtype=np.int32)
    following = np.full(len(position), -1, dtype=np.int32)
    if len(position):
        same = engine[by_engine[1:]] == engine[by_engine[:-1]]
        previous[by_engine[1:][same]] = by_engine[:-1][same]
        following[by_engine[:-1][same]] = by_engine[1:][same]
    return previous, following


def _edges(program: EngineProgram, place: _Placement) -> tuple[I32, I32, U8]:
    """Dependencies between steps: the same iteration inside one loop, the last execution of a source outside it."""
    rows = program.dependencies
    source, target = rows.source.astype(np.int64), rows.target.astype(np.int64)
    distance = rows.distance.astype(np.int64)
    issue = (rows.kind == DependencyKind.AFTER_START).astype(np.uint8)
    if not program.loops:
        plain = rows.distance == 0
        return rows.source[plain], rows.target[plain], issue[plain]
    together = (place.loop[source] == place.loop[target]) & (place.loop[target] >= 0)
    kept = together | (distance == 0)
    source, target, distance, together = source[kept], target[kept], distance[kept], together[kept]
    issue = issue[kept]
    times = place.trips[target]
    row = np.repeat(np.arange(len(target)), times)
    turn = np.arange(len(row)) - np.repeat(np.cumsum(times) - times, times)
    source, target, distance, together = source[row], target[row], distance[row], together[row]
    from_turn = np.where(together, turn - distance, place.trips[source] - 1)
    exists = from_turn >= 0
    sources = place.base[source] + from_turn * place.period[source]
    targets = place.base[target] + turn * place.period[target]
    return sources[exists].astype(np.int32), targets[exists].astype(np.int32), issue[row][exists]


def _groups(program: EngineProgram, place: _Placement, count: int) -> tuple[I32, I32]:
    group = np.full(count, -1, dtype=np.int32)
    sizes: list[int] = []
    for members in program.rendezvous:
        loops = {int(place.loop[m]) for m in members}
        if len(loops) != 1:
            raise Refused("rendezvous-across-loops", "a barrier has members inside and outside of a loop")
        for turn in range(int(place.trips[members[0]])):
            for member in members:
                group[place.base[member] + turn * place.period[member]] = len(sizes)
            sizes.append(len(members))
    return group, np.array(sizes, dtype=np.int32)


def loop_instructions(program: EngineProgram, loop: Loop) -> range:
    """The instructions a loop repeats."""
    return range(program.blocks[loop.first].first, program.blocks[loop.last - 1].last)
