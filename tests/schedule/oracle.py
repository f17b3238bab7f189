"""Runs a launch under one interleaving with plain integers, and says which accesses nothing ordered.

Order is kept as sets of executions, not as clocks: what a release publishes is written down in full. It is generous: whatever
might be ordered is; so a race it reports is one, while its silence proves nothing.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Int, Program
from racefree.proof.replay import Event, Fence, Lanes, launch_memory, left_behind, steps, untouched_memory


@dataclass(eq=False)
class Done:
    """One execution that has happened."""

    program: int
    event: Event
    bytes: frozenset[int]


@dataclass
class Cell:
    value: int
    released: set[Done] = field(default_factory=set)


@dataclass
class Instance:
    """`known` happened before whatever comes next here; `mine` are the executions since the last barrier."""

    running: object
    waiting: Event | Fence | None = None
    known: set[Done] = field(default_factory=set)
    mine: list[Done] = field(default_factory=list)
    fenced: set[Done] = field(default_factory=set)


CELLS_FROM = 65536


class Run:
    """One interleaving. `races` holds (access, access, program, program) of what nothing ordered."""

    def __init__(self, program: Program, facts: LaunchFacts) -> None:
        self.cells: dict[int, Cell] = {}
        self.initial = untouched_memory(facts)
        self.races: set[tuple[int, int]] = set()
        self.history: list[Done] = []
        memory = launch_memory(program, facts)
        self.instances = [Instance(steps(program, facts, (p, 0, 0), memory)) for p in range(facts.grid[0])]
        for each in self.instances:
            self._advance(each, None, first=True)

    def _advance(self, instance: Instance, value: Lanes | None, *, first: bool = False) -> None:
        try:
            running = instance.running
            instance.waiting = next(running) if first else running.send(value)  # type: ignore[call-overload, attr-defined]
        except StopIteration:
            instance.waiting = None

    def alive(self) -> list[int]:
        return [p for p, each in enumerate(self.instances) if each.waiting is not None]

    def step(self, p: int) -> tuple[int, int] | None:
        """Program `p` does its next access or barrier; (access, value read) if that was an atomic."""
        instance = self.instances[p]
        now = instance.waiting
        if isinstance(now, Fence):
            if now.orders_memory:
                instance.fenced.update(instance.mine)
                instance.mine = []
            self._advance(instance, None)
            return None
        assert isinstance(now, Event)
        atomic = now.access.kind.atomic
        touched = now.addresses[np.asarray(now.active)].reshape(-1)
        done = Done(p, now, frozenset(int(a) + k for a in touched for k in range(now.access.element_bytes)))
        if not atomic:
            self._check(done, instance)
            self._advance(instance, self._plain(now))
            return None
        read, found = self._atomic(done, instance)
        self._advance(instance, found)
        return now.index, read

    def _cell(self, address: int) -> Cell:
        if address not in self.cells:
            lanes = self.initial.read(np.array([address]), np.ones(1, np.bool_), 4, Int(32))
            self.cells[address] = Cell(int(lanes.bits[0]))
        return self.cells[address]

    def _plain(self, event: Event) -> Lanes | None:
        """A plain access to an atomic cell: a store ends the releases there, a load reads the newest value."""
        address = int(event.addresses.reshape(-1)[0])
        if event.access.shape != () or address < CELLS_FROM:
            return None
        cell = self._cell(address)
        if event.access.kind.writes:
            cell.value = int(event.operands[0].bits)
            cell.released = set()
            return None
        return Lanes(np.asarray(cell.value, np.uint64), np.asarray(True))

    def _atomic(self, done: Done, instance: Instance) -> tuple[int, Lanes]:
        access = done.event.access
        cell = self._cell(int(done.event.addresses.reshape(-1)[0]))
        assert access.sem is not None
        assert access.scope is not None
        broad = access.scope.spans_programs
        if access.sem.acquires and broad:
            instance.known |= cell.released
        self._check(done, instance)
        old = Lanes(np.asarray(cell.value, np.uint64), np.asarray(True))
        cell_read = cell.value
        cell.value = int(left_behind(access, old, done.event.operands).bits.reshape(-1)[0])
        if access.sem.releases and broad:
            single = [d for d in instance.mine if d.event.access.shape == ()]
            cell.released |= instance.known | instance.fenced | set(single)
        return cell_read, old

    def _check(self, done: Done, instance: Instance) -> None:
        mine = done.event.access
        for other in self.history:
            theirs = other.event.access
            if other.program == done.program or other in instance.known or not (mine.kind.writes or theirs.kind.writes):
                continue
            both = mine.kind.atomic and theirs.kind.atomic and mine.scope == theirs.scope and mine.scope is not None
            if both and mine.scope is not None and mine.scope.spans_programs:
                continue
            if not other.bytes.isdisjoint(done.bytes):
                self.races.add((min(mine.index, theirs.index), max(mine.index, theirs.index)))
        self.history.append(done)
        instance.mine.append(done)


def random_races(
    program: Program, facts: LaunchFacts, runs: int, seed: int, *, limit: int = 150
) -> set[tuple[int, int]]:
    """The races that some of `runs` random interleavings show, each cut off after `limit` steps."""
    found: set[tuple[int, int]] = set()
    for number in range(runs):
        rng = random.Random(f"{seed}:{number}")
        run = Run(program, facts)
        favour = rng.random() < 0.5
        last = 0
        for _ in range(limit):
            alive = run.alive()
            if not alive:
                break
            last = last if favour and last in alive and rng.random() < 0.8 else rng.choice(alive)
            run.step(last)
        found |= run.races
    return found


Schedule = Sequence[tuple[tuple[int, int, int], int, int | None]]


def follow(program: Program, facts: LaunchFacts, schedule: Schedule) -> set[tuple[int, int]]:
    """The races seen when the atomics happen in the given order, and all else as early as it can.

    Instances that do no atomic there come first or last, whichever yields the values the schedule names.
    """
    found = [_followed(program, facts, schedule, bystanders_first=first) for first in (False, True)]
    kept = [races for races in found if races is not None]
    assert kept, "no such interleaving"
    return set().union(*kept)


def _followed(
    program: Program, facts: LaunchFacts, schedule: Schedule, *, bystanders_first: bool
) -> set[tuple[int, int]] | None:
    run = Run(program, facts)
    listed = {access for _, access, _ in schedule}

    def settle(p: int) -> None:
        while isinstance(now := run.instances[p].waiting, Fence) or (now is not None and now.index not in listed):
            if isinstance(now, Event) and now.access.kind.atomic:
                break
            run.step(p)

    everybody = range(len(run.instances))
    for p in everybody if bystanders_first else sorted({p for (p, _, _), _, _ in schedule}):
        settle(p)
    for (p, _, _), access, value in schedule:
        waiting = run.instances[p].waiting
        if not isinstance(waiting, Event) or waiting.index != access or run.step(p) not in (None, (access, value)):
            return None
        settle(p)
    for p in everybody:
        settle(p)
    return run.races
