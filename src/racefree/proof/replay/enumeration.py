"""Decides a small launch by running every instance and comparing every pair of lane executions that meet on a byte.

Nothing here is clever on purpose: it is what the rungs are compared with. Synchronisation through atomics is not modelled,
so the answer is exact for programs whose atomics decide no address, mask, branch or bound (others are unreplayable).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from racefree.access import Kind
from racefree.graph.launch import Descriptor, LaunchFacts, Storage, Tensor
from racefree.graph.program import Program, accesses
from racefree.proof.replay.events import Event, Options, Pid
from racefree.proof.replay.memory import Memory, pointer_roots, untouched_memory
from racefree.proof.replay.run import Where, run_program
from racefree.proof.replicas import loads_replicas


@dataclass(frozen=True, slots=True)
class Rules:
    """Which order inside one instance counts.

    With `strict_lanes` only barriers and data dependence do, the latter not for replicas of a load; else the same lane of
    two equally shaped tiles is ordered as well where one thread runs both: tiles with at least one element per thread, an
    access and itself in another iteration, scalar stores and atomics; and a block-wide reduction counts as a barrier.
    `cross_lanes` says whether a result of an operation that mixes lanes (a reduction, a scan) counts as depending on every
    element it was made from.
    """

    strict_lanes: bool = False
    cross_lanes: bool = True


@dataclass(frozen=True, slots=True)
class Race:
    """Two unordered lane executions that share `byte`, in program order when they belong to one instance."""

    first: Where
    second: Where
    byte: int
    race_type: str

    @property
    def inside_one_instance(self) -> bool:
        return self.first.pid == self.second.pid


@dataclass(frozen=True, slots=True)
class Enumeration:
    """All races of a launch, one for each pair of accesses, separately inside one instance and between two.

    `out_of_bounds` names accesses with an active lane outside the storages its pointer may come from; such a lane is left
    out. `executions` counts active lanes.
    """

    races: tuple[Race, ...]
    out_of_bounds: tuple[int, ...]
    executions: int


@dataclass(frozen=True, slots=True, eq=False)
class _Lane:
    """One active lane of one event."""

    event: Event
    pid: Pid
    number: int
    start: int

    @property
    def where(self) -> Where:
        shape = self.event.active.shape
        position = tuple(int(k) for k in np.unravel_index(self.number, shape)) if shape else ()
        return Where(self.event.index, self.pid, self.event.iterations, position)


def enumerate_races(
    program: Program, facts: LaunchFacts, rules: Rules | None = None, *, max_steps: int = 100_000
) -> Enumeration:
    """Every race of the launch, by the order rules given. Raises `Unreplayable` like `run_program`."""
    rules = rules or Rules()
    options = Options(
        track=True,
        cross_lanes=rules.cross_lanes,
        may_be_unknown=without_conflict(program, facts),
        max_steps=max_steps,
        reductions_synchronise=not rules.strict_lanes,
    )
    events = launch_events(program, facts, options)
    cells, outside = _cells(program, facts, events)
    found: dict[tuple[int, int, bool], Race] = {}
    for byte in sorted(cells):
        _compare(cells[byte], byte, rules, facts, found)
    return Enumeration(
        tuple(found[key] for key in sorted(found)),
        tuple(sorted(outside)),
        sum(int(e.active.sum()) for _, e in events),
    )


def race_inside(
    program: Program, facts: LaunchFacts, pid: Pid, pair: tuple[int, int], rules: Rules, *, max_steps: int
) -> Race | None:
    """An unordered pair of executions of two accesses (or of one with itself) inside one instance, which runs alone.

    What the launch may write is unknown to it. Raises `Unreplayable` like `run_program`.
    """
    others = frozenset(a.index for a in accesses(program) if a.index not in pair)
    options = Options(
        track=True,
        cross_lanes=rules.cross_lanes,
        may_be_unknown=others,
        max_steps=max_steps,
        reductions_synchronise=not rules.strict_lanes,
    )
    events = [(pid, e) for e in run_program(program, facts, pid, options=options) if e.index in pair]
    cells, _ = _cells(program, facts, events)
    found: dict[tuple[int, int, bool], Race] = {}
    for byte in sorted(cells):
        _compare(cells[byte], byte, rules, facts, found)
    return found.get((min(pair), max(pair), True))


def instances(facts: LaunchFacts) -> Iterator[Pid]:
    """All program ids of the grid."""
    x, y, z = facts.grid
    yield from product(range(x), range(y), range(z))


def _storages(program: Program, facts: LaunchFacts) -> dict[int, tuple[Storage, ...] | None]:
    """Per access: the storages its pointer may come from, None for any."""
    found: dict[int, tuple[Storage, ...] | None] = {}
    for index, names in pointer_roots(program).items():
        arguments = [facts.arguments.get(name) for name in sorted(names or ())]
        tensors = [a.base if isinstance(a, Descriptor) else a for a in arguments]
        mine = tuple(t.storage for t in tensors if isinstance(t, Tensor))
        found[index] = mine if mine and len(mine) == len(arguments) else None
    return found


def without_conflict(program: Program, facts: LaunchFacts) -> frozenset[int]:
    """Accesses whose storage no write of the program can meet: where they go does not matter."""
    storages = _storages(program, facts)
    written: list[Storage] = []
    for access in accesses(program):
        if access.kind.writes:
            mine = storages[access.index]
            if mine is None:
                return frozenset()
            written.extend(mine)

    def meets(mine: tuple[Storage, ...] | None) -> bool:
        return mine is None or any(
            a.address < b.address + b.nbytes and b.address < a.address + a.nbytes for a in mine for b in written
        )

    return frozenset(a.index for a in accesses(program) if not meets(storages[a.index]))


def launch_events(program: Program, facts: LaunchFacts, options: Options) -> list[tuple[Pid, Event]]:
    """Run every instance, with the bytes any instance writes unknown: repeat until no further byte is written.

    Sound by induction on time: as long as only marked bytes have changed, every instance has read what it read here.
    """
    memory: Memory = untouched_memory(facts)
    while True:
        events = [
            (pid, e) for pid in instances(facts) for e in run_program(program, facts, pid, memory, options=options)
        ]
        grown = False
        for _, event in events:
            if event.access.kind.writes:
                written = event.addresses[event.active]
                grown = memory.mark_bytes(written, event.access.element_bytes) or grown
        if not grown:
            return events


def _cells(
    program: Program, facts: LaunchFacts, events: list[tuple[Pid, Event]]
) -> tuple[dict[int, list[_Lane]], set[int]]:
    """The lane executions on each byte that at least one of them writes, and the accesses that leave their storages."""
    storages = _storages(program, facts)
    everything = untouched_memory(facts).storages
    cells: dict[int, list[_Lane]] = defaultdict(list)
    outside: set[int] = set()
    for pid, event in events:
        mine = storages[event.index]
        home = Memory(everything if mine is None else mine)
        size = event.access.element_bytes
        inside = home.holds(event.addresses, size)
        if bool((event.active & ~inside).any()):
            outside.add(event.index)
        active = (event.active & inside).reshape(-1)
        starts = event.addresses.reshape(-1)
        for number in np.flatnonzero(active):
            lane = _Lane(event, pid, int(number), int(starts[number]))
            for byte in range(lane.start, lane.start + size):
                cells[byte].append(lane)
    written = {b: lanes for b, lanes in cells.items() if any(x.event.access.kind.writes for x in lanes)}
    return written, outside


def _compare(
    lanes: list[_Lane], byte: int, rules: Rules, facts: LaunchFacts, found: dict[tuple[int, int, bool], Race]
) -> None:
    """All pairs; between two instances, where nothing orders, one pair speaks for all lanes of two groups."""
    groups: dict[tuple[int, int, Pid], list[_Lane]] = defaultdict(list)
    for lane in lanes:
        groups[lane.event.index, lane.start, lane.pid].append(lane)
    keys = sorted(groups)
    for position, one in enumerate(keys):
        for other in keys[position:]:
            (left, start, pid), (right, other_start, other_pid) = one, other
            key = (left, right, pid == other_pid)
            if key in found or byte != max(start, other_start):
                continue
            writes = (groups[k][0].event.access.kind.writes for k in (one, other))
            if not any(writes) or _exempt(groups[one][0], groups[other][0]):
                continue
            for first, second in _pairs(groups[one], groups[other], same_instance=pid == other_pid):
                if not _ordered(first, second, rules, facts):
                    found[key] = Race(first.where, second.where, byte, _race_type(first, second))
                    break


def _pairs(one: list[_Lane], other: list[_Lane], *, same_instance: bool) -> Iterator[tuple[_Lane, _Lane]]:
    """Pairs of different executions, in program order inside one instance."""
    if not same_instance:
        yield one[0], other[0]
        return
    for position, a in enumerate(one):
        for b in one[position + 1 :] if one is other else other:
            yield (a, b) if (a.event.order, a.number) <= (b.event.order, b.number) else (b, a)


def _exempt(one: _Lane, other: _Lane) -> bool:
    """Two atomics on exactly the same bytes whose scopes include each other."""
    first, second = one.event.access, other.event.access
    if not (first.kind.atomic and second.kind.atomic):
        return False
    if one.start != other.start or first.element_bytes != second.element_bytes:
        return False
    if one.pid == other.pid:
        return True
    return all(a.scope is not None and a.scope.spans_programs for a in (first, second))


def _ordered(first: _Lane, second: _Lane, rules: Rules, facts: LaunchFacts) -> bool:
    """`first` comes first in program order where both belong to one instance; nothing orders two instances here."""
    if first.pid != second.pid:
        return False
    before, after = first.event, second.event
    if before.epoch != after.epoch:
        return True
    if before is after:
        return False
    threads = facts.num_warps * facts.warp_size * facts.num_ctas
    if _depends(first, second) and not (rules.strict_lanes and loads_replicas(before.access, after.access, threads)):
        return True
    return not rules.strict_lanes and first.number == second.number and _same_thread(before, after, facts)


def _same_thread(before: Event, after: Event, facts: LaunchFacts) -> bool:
    """Whether one thread runs the same lane of both: tiles that leave no thread without an element, and what is not replicated.

    A store or atomic of fewer elements is done by one replica, always the same; a load of so few is done by all.
    """
    if before.active.shape != after.active.shape:
        return False
    one_size = before.access.element_bytes == after.access.element_bytes
    if before.index == after.index:
        return True
    if one_size and before.active.size >= facts.num_warps * facts.warp_size * facts.num_ctas:
        return True
    return before.active.shape == () and Kind.LOAD not in (before.access.kind, after.access.kind)


def _depends(first: _Lane, second: _Lane) -> bool:
    """The address, mask or written value of `second` was computed from what `first` read."""
    read, sources = first.event.first_read, second.event.depends
    if read is None or sources is None:
        return False
    return bool(int(sources.reshape(-1)[second.number]) >> (read + first.number) & 1)


def _race_type(first: _Lane, second: _Lane) -> str:
    if first.event.access.kind.writes and second.event.access.kind.writes:
        return "WAW"
    return "RAW" if first.event.access.kind.writes else "WAR"
