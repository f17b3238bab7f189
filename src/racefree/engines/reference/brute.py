"""Exact hazards of small programs by brute force: byte sets for overlap, closures and executions for order.

Everything here is written for reading, on plain Python sets, and shares no code with the fast engine. Loops are not
unrolled: a program is taken as straight-line code.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise, product

from racefree.access import Pattern
from racefree.engines.program import (
    AccessFlag,
    DependencyKind,
    EngineProgram,
    Footprint,
    InstructionFlag,
    Timing,
    UpdateMode,
    WaitMode,
)

Byte = tuple[int, int, int]
"""(space, partition, byte)"""

Before = Callable[[int, int, bool], bool]
"""`before(a, b, writes)`: instruction a has completed (its writes) or read its inputs whenever b starts."""


@dataclass(frozen=True, slots=True, order=True)
class Hazard:
    """Two accesses of two instructions (rows of the program's access table) that race; `first` is the lower index."""

    first: int
    second: int
    first_access: int
    second_access: int


def pattern_bytes(pattern: Pattern) -> set[int]:
    """Every byte of a pattern."""
    steps = [[dim.step_bytes * k for k in range(dim.count)] for dim in pattern.dims]
    starts = {pattern.base_bytes + sum(moves) for moves in product(*steps)}
    return {start + byte for start in starts for byte in range(pattern.elem_bytes)}


def footprint_bytes(footprint: Footprint) -> set[Byte]:
    """Every byte of a footprint, with its partition (0 where the space has one axis)."""
    partitions = pattern_bytes(footprint.partitions) if footprint.partitions is not None else {0}
    return {(footprint.space, p, b) for p in partitions for b in pattern_bytes(footprint.bytes)}


def hazards(program: EngineProgram, before: Before) -> set[Hazard]:
    """All racing accesses: they share a byte, one is a write, and neither instruction must precede the other."""
    rows = program.accesses
    touched = [footprint_bytes(program.footprints[f]) for f in range(len(program.footprints))]
    writes = [bool(flag & AccessFlag.WRITE) for flag in rows.flags.tolist()]
    found: set[Hazard] = set()
    for x in range(len(rows)):
        for y in range(x + 1, len(rows)):
            i, j = int(rows.instruction[x]), int(rows.instruction[y])
            if i == j or not (writes[x] or writes[y]):
                continue
            if before(i, j, writes[x]) or before(j, i, writes[y]):
                continue
            if touched[rows.footprint[x]] & touched[rows.footprint[y]]:
                found.add(Hazard(i, j, x, y))
    return found


# ---- dependency order ------------------------------------------------------------------------------------------------


def dependency_before(program: EngineProgram, *, queues: bool = False) -> Before:
    """Happens-before by dependencies, timelines and barriers; with `queues`, completions on one queue are in order."""
    count = len(program)
    after: list[set[int]] = [set() for _ in range(2 * count)]  # node 2x: x starts; 2x + 1: x completed
    for index in range(count):
        after[2 * index].add(2 * index + 1)
    for line in _timelines(program):
        for one, next_one in pairwise(line):
            after[2 * one + (0 if _asynchronous(program, one) else 1)].add(2 * next_one)
    edges = program.dependencies
    for source, target, kind in zip(edges.source.tolist(), edges.target.tolist(), edges.kind.tolist(), strict=True):
        after[2 * source + (0 if kind == DependencyKind.AFTER_START else 1)].add(2 * target)
    for members in program.rendezvous:
        for one in members:
            for other in members:
                if one != other:
                    after[2 * one].add(2 * other + 1)
    if queues:
        last: dict[int, int] = {}
        for index, queue in enumerate(program.instructions.queue.tolist()):
            if queue >= 0:
                if queue in last:
                    after[2 * last[queue] + 1].add(2 * index + 1)
                last[queue] = index
    reach = _closure(after)
    return lambda a, b, writes: 2 * b in reach[2 * a + 1]


def _closure(after: list[set[int]]) -> list[set[int]]:
    reach: list[set[int]] = []
    for node in range(len(after)):
        seen: set[int] = set()
        stack = [node]
        while stack:
            for following in after[stack.pop()]:
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        reach.append(seen)
    return reach


# ---- semaphore order -------------------------------------------------------------------------------------------------

EventPoint = tuple[str, int]
"""("start" | "counts" | "read" | "done", instruction); "counts" is when an instruction has added what it adds while it runs"""


@dataclass(slots=True)
class Machine:
    """The hardware: engines run their timelines, counters are what the updates made them, nothing is assumed.

    With `queues`, an asynchronous instruction completes only after the earlier ones of its queue and engine.
    """

    program: EngineProgram
    queues: bool = False

    def initial(self) -> State:
        return State((0,) * len(self.program.engines), frozenset(), (0,) * len(self.program.semaphores))

    def enabled(self, state: State) -> Iterator[EventPoint]:
        """Everything that can happen next."""
        for engine, line in enumerate(_timelines(self.program)):
            at = state.at[engine]
            if at < len(line) and self._free(state, engine, line) and self._ready(line[at], state):
                yield "start", line[at]
        for kind, index in sorted(state.open):
            if kind == "counts":
                yield "counts", index
            elif kind == "start":
                yield "read", index
            elif kind == "read" and self._may_complete(state, index):
                yield "done", index

    def after(self, state: State, event: EventPoint) -> State:
        kind, index = event
        at, open_points, counters = state.at, set(state.open), list(state.counters)
        if kind == "start":
            engine = int(self.program.instructions.engine[index])
            at = (*at[:engine], at[engine] + 1, *at[engine + 1 :])
            open_points.add(("start", index))
            if self._counts_while_running(index):
                open_points.add(("counts", index))
        elif kind == "counts":
            open_points.remove(("counts", index))
            self._update(index, Timing.RUNNING, counters)
        elif kind == "read":
            open_points.remove(("start", index))
            open_points.add(("read", index))
            self._update(index, Timing.INPUTS_READ, counters)
        else:
            open_points.remove(("read", index))
            self._update(index, Timing.COMPLETED, counters)
        return State(at, frozenset(open_points), tuple(counters))

    def _free(self, state: State, engine: int, line: list[int]) -> bool:
        """The previous instruction of the engine has completed, or it is asynchronous."""
        at = state.at[engine]
        if at == 0 or _asynchronous(self.program, line[at - 1]):
            return True
        return not {("start", line[at - 1]), ("read", line[at - 1])} & state.open

    def _ready(self, index: int, state: State) -> bool:
        waits = self.program.waits
        for row in range(len(waits)):
            if int(waits.instruction[row]) == index:
                value, counter = int(waits.value[row]), state.counters[waits.semaphore[row]]
                if counter != value if waits.mode[row] == WaitMode.EQUAL else counter < value:
                    return False
        return True

    def _counts_while_running(self, index: int) -> bool:
        updates = self.program.updates
        return any(i == index and t == Timing.RUNNING for i, t in zip(updates.instruction, updates.timing, strict=True))

    def _may_complete(self, state: State, index: int) -> bool:
        if ("counts", index) in state.open:
            return False
        for members in self.program.rendezvous:
            if index in members:
                for member in members:
                    engine = int(self.program.instructions.engine[member])
                    if _timelines(self.program)[engine].index(member) >= state.at[engine]:
                        return False
        queue = int(self.program.instructions.queue[index])
        if self.queues and queue >= 0:
            for _, other in state.open:
                same = int(self.program.instructions.queue[other]) == queue
                if same and other < index and self._engine(other) == self._engine(index):
                    return False
        return True

    def _engine(self, index: int) -> int:
        return int(self.program.instructions.engine[index])

    def _update(self, index: int, timing: Timing, counters: list[int]) -> None:
        updates = self.program.updates
        for row in range(len(updates)):
            if int(updates.instruction[row]) == index and updates.timing[row] == timing:
                semaphore, amount = int(updates.semaphore[row]), int(updates.amount[row])
                match UpdateMode(int(updates.mode[row])):
                    case UpdateMode.ADD:
                        counters[semaphore] += amount
                    case UpdateMode.SUBTRACT:
                        counters[semaphore] -= amount
                    case UpdateMode.SET:
                        counters[semaphore] = amount
                    case UpdateMode.UNKNOWN:
                        raise ValueError("an unknown update has no meaning")


@dataclass(frozen=True, slots=True)
class State:
    """How many instructions each engine started, what has started but not completed, and the counters."""

    at: tuple[int, ...]
    open: frozenset[EventPoint]
    counters: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Explored:
    """What all executions have in common. `must[b]` holds the (point, a) that happened whenever b starts."""

    must: dict[int, frozenset[EventPoint]]
    finishes: bool

    def before(self, a: int, b: int, writes: bool) -> bool:
        """Vacuously true when b never starts."""
        return b not in self.must or ("done" if writes else "read", a) in self.must[b]


def explore(program: EngineProgram, *, queues: bool = False, limit: int = 200_000) -> Explored:
    """Tries every execution. Raises OverflowError past `limit` states."""
    machine = Machine(program, queues)
    total = len(program)
    must: dict[int, frozenset[EventPoint]] = {}
    stack = [machine.initial()]
    seen = {stack[0]}
    finishes = True
    while stack:
        state = stack.pop()
        events = list(machine.enabled(state))
        if not events and (state.open or sum(state.at) < total):
            finishes = False
        for event in events:
            if event[0] == "start":
                past = _past(program, state)
                must[event[1]] = must[event[1]] & past if event[1] in must else past
            following = machine.after(state, event)
            if following not in seen:
                seen.add(following)
                stack.append(following)
        if len(seen) > limit:
            raise OverflowError(f"more than {limit} states")
    return Explored(must, finishes)


def semaphore_before(program: EngineProgram, *, queues: bool = False) -> Before:
    """Happens-before by semaphores for counters that only grow, by holding back one point at a time.

    Equal to `explore` there, and polynomial: doing more never disables anything, so one execution that does all it can
    without the point held back reaches everything that does not need it.
    """
    machine = Machine(program, queues)
    reached: dict[EventPoint, set[int]] = {}

    def before(a: int, b: int, writes: bool) -> bool:
        held = ("done" if writes else "read", a)
        if held not in reached:
            reached[held] = _reachable_without(machine, held)
        return b not in reached[held]

    return before


def _reachable_without(machine: Machine, held: EventPoint) -> set[int]:
    state = machine.initial()
    started: set[int] = set()
    moved = True
    while moved:
        moved = False
        for event in list(machine.enabled(state)):
            if event == held:
                continue
            state = machine.after(state, event)
            moved = True
            if event[0] == "start":
                started.add(event[1])
            break
    return started


def violations(
    program: EngineProgram, before: Before, rng: random.Random, *, runs: int, queues: bool = False
) -> list[tuple[int, int]]:
    """Random executions that contradict `before`: pairs (a, b) where b started although a's point had not happened."""
    machine = Machine(program, queues)
    broken: list[tuple[int, int]] = []
    for _ in range(runs):
        state = machine.initial()
        favour = [rng.random() for _ in range(len(program))]
        while events := list(machine.enabled(state)):
            event = max(events, key=lambda e: favour[e[1]] + 0.3 * rng.random() + (0.5 if e[0] == "start" else 0))
            if event[0] == "start":
                past = _past(program, state)
                for a in range(len(program)):
                    for writes in (True, False):
                        if before(a, event[1], writes) and ("done" if writes else "read", a) not in past:
                            broken.append((a, event[1]))
            state = machine.after(state, event)
    return broken


def _past(program: EngineProgram, state: State) -> frozenset[EventPoint]:
    past: set[EventPoint] = set()
    for engine, line in enumerate(_timelines(program)):
        for index in line[: state.at[engine]]:
            if ("start", index) not in state.open:
                past.add(("read", index))
                if ("read", index) not in state.open:
                    past.add(("done", index))
    return frozenset(past)


def _timelines(program: EngineProgram) -> list[list[int]]:
    lines: list[list[int]] = [[] for _ in program.engines]
    for index, engine in enumerate(program.instructions.engine.tolist()):
        lines[engine].append(index)
    return lines


def _asynchronous(program: EngineProgram, index: int) -> bool:
    return bool(int(program.instructions.flags[index]) & InstructionFlag.ASYNC)
