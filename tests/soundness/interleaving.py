"""One sequentially consistent interleaving of a launch's instances after another, with release and acquire judged afterwards.

A race one interleaving shows is a race. None in many random ones says little; `exploring` goes through all of them.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np

from racefree.access import Kind
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program, accesses
from racefree.proof.handed_results import with_result_barriers
from racefree.proof.replay import Event, Lanes, Options, Steps, left_behind, steps, untouched_memory
from racefree.proof.replay.enumeration import instances
from racefree.proof.replay.events import Pid
from racefree.proof.replay.lanes import element_bits


@dataclass(slots=True, eq=False)
class Node:
    """One lane of one executed access; `acquired` are the release nodes its own program order makes visible to it."""

    instance: int
    event: Event
    lane: int
    start: int
    acquired: list[Acquisition] = field(default_factory=list)

    @property
    def stop(self) -> int:
        return self.start + self.event.access.element_bytes


@dataclass(slots=True, eq=False)
class Acquisition:
    """An acquiring lane, and the releases it read from."""

    by: Node
    sources: tuple[Node, ...]


@dataclass(slots=True)
class _Cell:
    """What an atomic would read from: the releases at the head of the current release sequence."""

    size: int
    heads: tuple[Node, ...]


@dataclass(slots=True)
class Instance:
    number: int
    pid: Pid
    stepper: Steps
    pending: Event | None = None
    done: bool = False
    asleep_on: int | None = None
    last_seen: tuple[int, int, int | None] | None = None
    acquisitions: list[Acquisition] = field(default_factory=list)


def find_race(program: Program, facts: LaunchFacts, *, seed: int, rounds: int = 60) -> tuple[int, int] | None:
    """Indices of two accesses of different instances that some interleaving leaves unordered, or None."""
    rng = random.Random(seed)
    for _ in range(rounds):
        found = unordered(_random_run(program, facts, rng), facts)
        if found is not None:
            return found
    return None


def _random_run(program: Program, facts: LaunchFacts, rng: random.Random, limit: int = 2000) -> list[Node]:
    """What was executed, also when all that are left wait for ever or the steps are used up."""
    run = Run(program, facts)
    burst = rng.choice((1, 1, 3, 10, 40))
    taken = 0
    while awake := run.awake():
        instance = rng.choice(awake)
        for _ in range(rng.randint(1, burst)):
            taken += 1
            if taken > limit:
                return run.nodes
            if instance.pending is None or instance.asleep_on is not None:
                break
            run.step(instance)
    return run.nodes


class Run:
    """The launch in the middle of one interleaving. Every instance stands before an access, or is done."""

    def __init__(self, program: Program, facts: LaunchFacts) -> None:
        self.facts = facts
        program = with_result_barriers(program)
        memory = untouched_memory(facts)
        self.memory = memory
        self.bytes: dict[int, int | None] = {}
        self.cells: dict[int, _Cell] = {}
        self.nodes: list[Node] = []
        unread = frozenset(a.index for a in accesses(program) if a.kind is Kind.LOAD)
        options = Options(track=True, may_be_unknown=unread)
        self.instances = [
            Instance(number, pid, steps(program, facts, pid, memory, options))
            for number, pid in enumerate(instances(facts))
        ]
        for instance in self.instances:
            self._advance(instance, None)

    def awake(self) -> list[Instance]:
        """Those that can go on: not done, and not waiting for a cell to change."""
        return [i for i in self.instances if not i.done and i.asleep_on is None]

    def step(self, instance: Instance) -> None:
        """The instance does its pending access and moves on to the next."""
        assert instance.pending is not None
        self._advance(instance, self._execute(instance, instance.pending))

    def _advance(self, instance: Instance, reply: Lanes | None) -> None:
        try:
            step = instance.stepper.send(reply)
            while not isinstance(step, Event):
                step = instance.stepper.send(None)
            instance.pending = step
        except StopIteration:
            instance.pending, instance.done = None, True

    def _execute(self, instance: Instance, event: Event) -> Lanes | None:
        access = event.access
        shape = event.active.shape
        bits = np.zeros(event.active.size, dtype=np.uint64)
        known = np.zeros(event.active.size, dtype=np.bool_)
        for lane in np.flatnonzero(event.active.reshape(-1)):
            start = int(event.addresses.reshape(-1)[lane])
            node = Node(instance.number, event, int(lane), start)
            node.acquired = [a for a in instance.acquisitions if _follows(a.by, node, self.facts)]
            self.nodes.append(node)
            old = self._read(start, access.element_bytes)
            if access.result is not None and old is not None:
                bits[lane], known[lane] = old & ((1 << min(64, element_bits(access.result.element))) - 1), True
            if access.kind.writes:
                self._write(node, old)
            self._doze(instance, node, old)
        if access.result is None:
            return None
        return Lanes(bits.reshape(shape), known.reshape(shape))

    def _doze(self, instance: Instance, node: Node, old: int | None) -> None:
        """An atomic that finds and leaves the same value twice in a row is spinning: it sleeps until that value changes."""
        if not node.event.access.kind.atomic or self._read(node.start, node.event.access.element_bytes) != old:
            instance.last_seen = None
            return
        seen = (node.event.index, node.start, old)
        instance.asleep_on = node.start if instance.last_seen == seen else None
        instance.last_seen = seen

    def _read(self, start: int, size: int) -> int | None:
        value = 0
        for offset in range(size):
            byte = self.bytes.get(start + offset, -1)
            if byte == -1:
                byte = self._initial(start + offset)
            if byte is None:
                return None
            value |= byte << (8 * offset)
        return value

    def _initial(self, address: int) -> int | None:
        for storage in self.memory.storages:
            if storage.address <= address < storage.address + storage.nbytes and storage.contents is not None:
                return int(storage.contents[address - storage.address])
        return None

    def leaves_unchanged(self, event: Event, lane: int) -> bool:
        """Whether the access would leave the value that is there now."""
        start = int(event.addresses.reshape(-1)[lane])
        old = self._read(start, event.access.element_bytes)
        return not event.access.kind.writes or (old is not None and self._new_value(event, lane, old) == old)

    def _new_value(self, event: Event, lane: int, old: int | None) -> int | None:
        one = [_of_lane(o, lane) for o in event.operands]
        found = Lanes(np.array([old or 0], dtype=np.uint64), np.array([old is not None]))
        return left_behind(event.access, found, one).scalar()

    def _write(self, node: Node, old: int | None) -> None:
        access, size = node.event.access, node.event.access.element_bytes
        new = self._new_value(node.event, node.lane, old)
        if access.kind.atomic:
            self._synchronise(node, wrote=new is None or new != old or access.kind is Kind.RMW)
        else:
            for byte in range(node.start, node.stop):
                self.cells.pop(byte, None)
        for offset in range(size):
            self.bytes[node.start + offset] = None if new is None else new >> (8 * offset) & 255
        if new is None or new != old:
            for instance in self.instances:
                if instance.asleep_on is not None and node.start <= instance.asleep_on < node.stop:
                    instance.asleep_on = instance.last_seen = None

    def _synchronise(self, node: Node, *, wrote: bool) -> None:
        access = node.event.access
        spans = access.scope is not None and access.scope.spans_programs
        cell = self.cells.get(node.start)
        heads = cell.heads if cell is not None and cell.size == access.element_bytes else ()
        if access.sem is not None and access.sem.acquires and spans and heads:
            acquisition = Acquisition(node, heads)
            node.acquired.append(acquisition)
            self.instances[node.instance].acquisitions.append(acquisition)
        if not wrote:
            return
        releases = access.sem is not None and access.sem.releases and spans
        kept = heads if spans else ()
        self.cells[node.start] = _Cell(access.element_bytes, (*kept, node) if releases else kept)


def _of_lane(lanes: Lanes, lane: int) -> Lanes:
    """One lane of an operand, which is a scalar or has the shape of its access."""
    at = lane if lanes.bits.size > 1 else 0
    return Lanes(lanes.bits.reshape(-1)[at : at + 1], np.asarray(lanes.known).reshape(-1)[at : at + 1])


def _follows(first: Node, second: Node, facts: LaunchFacts) -> bool:
    """Inside one instance: `first` (an atomic, or an access before a release) is surely done before `second`."""
    before, after = first.event, second.event
    if before.order >= after.order:
        return False
    if before.epoch < after.epoch:
        return True
    if before.first_read is not None:
        read = before.first_read + first.lane
        depends = 0 if after.depends is None else int(after.depends.reshape(-1)[second.lane])
        if (depends | after.control) >> read & 1:
            return True
    if first.lane != second.lane or before.active.shape != after.active.shape:
        return False
    if before.active.shape == ():
        return Kind.LOAD not in (before.access.kind, after.access.kind)
    return before.active.size >= facts.num_warps * facts.warp_size


def _happens_before(a: Node, b: Node, facts: LaunchFacts) -> bool:
    """`a` of one instance is visible to `b` of another: released after it, acquired before `b`, through any chain."""
    todo = [source for acquisition in b.acquired for source in acquisition.sources]
    seen: set[int] = set()
    while todo:
        release = todo.pop()
        if id(release) in seen:
            continue
        seen.add(id(release))
        if release.instance == a.instance and (release is a or _follows(a, release, facts)):
            return True
        todo.extend(source for acquisition in release.acquired for source in acquisition.sources)
    return False


def unordered(nodes: list[Node], facts: LaunchFacts) -> tuple[int, int] | None:
    by_byte: dict[int, list[Node]] = {}
    for node in nodes:
        for byte in range(node.start, node.stop):
            by_byte.setdefault(byte, []).append(node)
    judged: set[tuple[int, int]] = set()
    for meeting in by_byte.values():
        if not any(n.event.access.kind.writes for n in meeting):
            continue
        for position, first in enumerate(meeting):
            for second in meeting[position + 1 :]:
                if first.instance == second.instance or (id(first), id(second)) in judged:
                    continue
                judged.add((id(first), id(second)))
                if _conflict(first, second) and not _happens_before(first, second, facts):
                    return first.event.index, second.event.index
    return None


def _conflict(first: Node, second: Node) -> bool:
    one, other = first.event.access, second.event.access
    if not (one.kind.writes or other.kind.writes):
        return False
    if not (one.kind.atomic and other.kind.atomic):
        return True
    same = first.start == second.start and one.element_bytes == other.element_bytes
    return not (same and all(a.scope is not None and a.scope.spans_programs for a in (one, other)))
