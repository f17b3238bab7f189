"""All interleavings of the synchronising atomics of a few program instances, with the stale reads weak memory allows.

The state is explicit: where each instance stands, and per atomic cell the writes some instance may still read, each with
the clock a release left on it. Writes to a cell are read-modify-writes, so they form one chain; a read that changes nothing
may see any write of the chain not yet known to be overwritten. Equal states are visited once, so spinning costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from racefree.access import Site
from racefree.errors import Refusal
from racefree.proof.schedule.effects import effect
from racefree.proof.schedule.footprints import Footprints, Meeting
from racefree.proof.schedule.initial import initial_value
from racefree.proof.schedule.machine import Machine
from racefree.proof.schedule.segments import Left, Logged, Observed, Segment
from racefree.proof.schedule.thread import UNSTAMPED, Entry, Pending, Thread, dominates
from racefree.proof.schedule.values import Clock

Pid = tuple[int, int, int]


class Write(NamedTuple):
    """One write of a cell: its value, what reading it makes visible (for sure, at most), and the cells' writes it implies."""

    value: int | None
    strict: Clock
    lenient: Clock
    seen: Clock


Cells = tuple[tuple[Write, ...], ...]
Store = tuple[tuple[int, ...], int, int | None]
"""A write that is no synchronising atomic: addresses, bytes of each, and the value where it is one known integer."""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two executions of different instances that share a byte and that nothing orders in some interleaving."""

    programs: tuple[int, int]
    entries: tuple[Entry, Entry]
    meeting: Meeting
    schedule: tuple[tuple[int, int, int | None], ...]


@dataclass(slots=True)
class Exploration:
    """What came of it. `entries` are all executions per member (true: only seen after a stale read), `behind` the state that
    one was first seen in; `touched` the bytes of the cells used; `blurred` and `missed` the bytes and cells to know from the
    start when exploring again."""

    races: list[Pair] = field(default_factory=list)
    doubts: list[Pair] = field(default_factory=list)
    entries: list[dict[Entry, bool]] = field(default_factory=list)
    behind: list[dict[Entry, State]] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)
    stuck: Refusal | None = None
    hazard: Site | None = None
    over_budget: bool = False
    ended: bool = False
    spun: bool = False
    blurred: set[int] = field(default_factory=set)
    missed: list[tuple[int, int]] = field(default_factory=list)


@dataclass(slots=True)
class _Step:
    """The memoised outcome of one instance's atomic."""

    thread: int
    logged: list[Logged]
    left: Left | None
    stores: list[Store]


@dataclass(slots=True)
class State:
    threads: tuple[int, ...]
    cells: Cells
    parent: State | None
    by: tuple[int, int, int | None] | None
    stale: bool

    def steps(self) -> tuple[tuple[int, int, int | None], ...]:
        """What led here: (member, access, value read) of each atomic, in order."""
        found = []
        state: State | None = self
        while state is not None:
            if state.by is not None:
                found.append(state.by)
            state = state.parent
        return tuple(reversed(found))


class Explorer:
    """One group of instances that may meet through atomics. `blurred` cells hold unknown values throughout."""

    def __init__(
        self,
        machine: Machine,
        pids: list[Pid],
        *,
        blurred: set[int],
        places: list[tuple[int, int]],
        initial: dict[int, int | None],
        budget: int,
    ) -> None:
        self.machine = machine
        self.footprints: Footprints = machine.footprints
        self.pids = pids
        self.blurred = blurred
        self.initial = initial
        self.budget = budget
        self.result = Exploration(entries=[{} for _ in pids], behind=[{} for _ in pids])
        self.threads: list[Thread] = []
        self._bases: dict[tuple[object, ...], int] = {}
        self._numbers: dict[tuple[int, tuple[Clock, ...]], int] = {}
        self._keys: list[tuple[int, tuple[Clock, ...]]] = []
        self._visited: dict[tuple[object, ...], list[tuple[int, ...]]] = {}
        self._order: dict[tuple[int, int], bool] = {}
        self._hits: dict[tuple[object, ...], list[tuple[int, int | None]]] = {}
        self._steps: dict[tuple[object, ...], _Step] = {}
        self._cell_of: dict[tuple[int, int], int] = {place: number for number, place in enumerate(places)}
        self._stored: set[tuple[int, int]] = set()
        self._compared: set[tuple[int, int, int, bool]] = set()
        self._kept: list[list[Logged]] = []
        self._effects: dict[tuple[int, int | None, tuple[int | None, ...]], tuple[int | None, bool]] = {}
        self._history: dict[int, bool] = {}
        self._pairs_seen: set[tuple[object, ...]] = set()
        self.zero = (0,) * len(pids)

    # ---- search ------------------------------------------------------------------------------------------------------

    def run(self, extra_after_race: int, deadline: float) -> Exploration:
        """Visit every reachable state; after a race, also one inside an instance, only `extra_after_race` more steps, to see
        what else there is.

        Past `deadline` (of the monotonic clock) the exploration ends over budget.
        """
        state = self._first()
        stack = [state]
        self._is_new(state)
        left = self.budget
        while stack:
            state = stack.pop()
            if all(self.threads[t].done and self.threads[t].stuck is None for t in state.threads):
                self.result.ended = True
            found = list(self._successors(state))
            left -= len(found)
            # Reads of the newest write come first: what is seen after a stale one shows no race for certain.
            stack.extend(reversed([following for following in found if self._is_new(following)]))
            if self.result.races or self.machine.insider.raced:
                left = min(left, extra_after_race)
            if left <= 0 or time.monotonic() > deadline:
                self.result.over_budget = bool(stack)
                break
        return self.result

    def _first(self) -> State:
        numbers: list[int] = []
        cells: list[tuple[Write, ...]] = []
        state = State((), (), None, None, False)
        for member, pid in enumerate(self.pids):
            self.machine.insider.instance = pid
            segment = self.machine.start(pid, member, len(self.pids))
            numbers.append(self._intern(segment.thread))
            self._note(segment)
            self._kept.append(segment.logged)  # comparisons are remembered by identity
            self._log(member, segment.logged, tuple(numbers), state)
            self._store(cells, segment.stores)
        return State(tuple(numbers), tuple(cells), None, None, False)

    def _successors(self, state: State) -> Iterator[State]:
        for member, number in enumerate(state.threads):
            thread = self.threads[number]
            if thread.pending is None:
                continue
            cell = self._cell(thread.pending)
            writes = self._writes(state.cells, cell)
            for position in self._readable(thread, thread.pending, cell, writes):
                yield self._follow(state, member, cell, writes, position)

    def _readable(self, thread: Thread, pending: Pending, cell: int, writes: tuple[Write, ...]) -> Iterator[int]:
        """The newest write always; older ones for an operation that writes nothing and may be done by a plain read."""
        newest = len(writes) - 1
        yield newest
        access = pending.access
        if access.index not in self.machine.stale:
            return
        oldest = thread.seen[cell] if cell < len(thread.seen) else 0
        for position in range(newest - 1, oldest - 1, -1):
            key = (access.index, writes[position].value, pending.operands)
            if key not in self._effects:
                self._effects[key] = effect(access, writes[position].value, pending.operands)
            if not self._effects[key][1]:
                yield position

    def _follow(self, state: State, member: int, cell: int, writes: tuple[Write, ...], position: int) -> State:
        number = state.threads[member]
        pending = self.threads[number].pending
        assert pending is not None
        write = writes[position]
        step = self._step(number, member, cell, write, position, len(writes) - 1)
        cells = list(state.cells)
        while len(cells) <= cell:
            cells.append(())
        cells[cell] = self._after(cell, writes, position, step.left)
        self._store(cells, step.stores)
        threads = (*state.threads[:member], step.thread, *state.threads[member + 1 :])
        by = (member, pending.access.index, write.value)
        following = State(threads, tuple(cells), state, by, state.stale or position < len(writes) - 1)
        self._log(member, step.logged, threads, following)
        return following

    def _after(self, cell: int, writes: tuple[Write, ...], position: int, left: Left | None) -> tuple[Write, ...]:
        if left is None:
            return writes
        if not self._remembers(cell):
            writes, position = (), 0
        value = None if cell in self._blurred_cells() else left.value
        write = Write(value, left.strict, left.lenient, left.seen)
        return (*writes, write) if left.fresh else (*writes[:position], write, *writes[position + 1 :])

    def _remembers(self, cell: int) -> bool:
        """True when some atomic may read an old value of this cell."""
        found = self._history.get(cell)
        if found is None:
            address, size = next(p for p, c in self._cell_of.items() if c == cell)
            found = self._history[cell] = self.machine.may_read_stale(address, size)
        return found

    def _step(self, number: int, member: int, cell: int, write: Write, position: int, newest: int) -> _Step:
        key = (number, member, cell, write, position, newest)
        found = self._steps.get(key)
        if found is None:
            seen = Observed(cell, position, write.value, write.strict, write.lenient, write.seen, newest)
            self.machine.insider.instance = self.pids[member]
            segment, left = self.machine.resume(self.threads[number], seen, member)
            self._note(segment)
            found = _Step(self._intern(segment.thread), segment.logged, left, segment.stores)
            self._steps[key] = found
        return found

    def _note(self, segment: Segment) -> None:
        self.result.spun = self.result.spun or segment.spun
        self.result.hazard = self.result.hazard or segment.hazard
        self.result.stuck = self.result.stuck or segment.thread.stuck

    # ---- states ------------------------------------------------------------------------------------------------------

    def _intern(self, thread: Thread) -> int:
        base, clocks = thread.key()
        key = (self._bases.setdefault(base, len(self._bases)), clocks)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.threads)
            self.threads.append(thread)
            self._keys.append(key)
        return number

    def _is_new(self, state: State) -> bool:
        """True unless a state was visited that is the same, or the same but for lower clocks or without a stale read.

        Instances that stand alike while nobody has released anything cannot be told apart.
        """
        threads = state.threads
        if all(self.threads[t].epoch == 0 for t in threads):
            threads = tuple(sorted(threads, key=self._keys.__getitem__))
        bases = (tuple(self._keys[t][0] for t in threads), state.cells)
        for stale in {False, state.stale}:
            if any(all(map(self._dominates, low, threads)) for low in self._visited.get((*bases, stale), ())):
                return False
        self._visited.setdefault((*bases, state.stale), []).append(threads)
        return True

    def _dominates(self, low: int, high: int) -> bool:
        if low == high:
            return True
        found = self._order.get((low, high))
        if found is None:
            found = self._order[(low, high)] = dominates(self._keys[low][1], self._keys[high][1])
        return found

    # ---- cells -------------------------------------------------------------------------------------------------------

    def _cell(self, pending: Pending) -> int:
        place = (pending.address, pending.access.element_bytes)
        found = self._cell_of.get(place)
        if found is None:
            found = self._cell_of[place] = len(self._cell_of)
            if any(a < place[0] + place[1] and place[0] < a + size for a, size in self._stored):
                self.result.missed.append(place)
            for (address, size), _ in list(self._cell_of.items()):
                overlap = address < place[0] + place[1] and place[0] < address + size
                if overlap and (address, size) != place:
                    self._blur(range(min(address, place[0]), max(address + size, place[0] + place[1])))
        self.result.touched.update(range(place[0], place[0] + place[1]))
        return found

    def _blur(self, each: range) -> None:
        self.result.blurred.update(b for b in each if b not in self.blurred)

    def _blurred_cells(self) -> set[int]:
        if not self.blurred:
            return set()
        return {
            c for (address, size), c in self._cell_of.items() if any(address + k in self.blurred for k in range(size))
        }

    def _writes(self, cells: Cells | list[tuple[Write, ...]], cell: int) -> tuple[Write, ...]:
        if cell < len(cells) and cells[cell]:
            return cells[cell]
        place = next(p for p, c in self._cell_of.items() if c == cell)
        value = None if cell in self._blurred_cells() else self._initial(place)
        return (Write(value, self.zero, self.zero, ()),)

    def _initial(self, place: tuple[int, int]) -> int | None:
        key = place[0]
        if key not in self.initial:
            self.initial[key] = initial_value(self.machine.facts, place[0], place[1])
        return self.initial[key]

    def _store(self, cells: list[tuple[Write, ...]], stores: list[Store]) -> None:
        """Plain and tile-wide writes that hit atomic cells: they end the chain of releases there."""
        for store in stores:
            for cell, value in self._hit_by(store):
                while len(cells) <= cell:
                    cells.append(())
                chain = self._writes(cells, cell)
                cells[cell] = (*chain, Write(value, self.zero, chain[-1].lenient, ()))

    def _hit_by(self, store: Store) -> list[tuple[int, int | None]]:
        """The cells a write meets, and what it leaves there (None where that cannot be told)."""
        key = (store, len(self._cell_of))
        found = self._hits.get(key)
        if found is not None:
            return found
        found = self._hits[key] = []
        places, size, value = store
        self._stored.update((place, size) for place in places)
        for (address, width), cell in self._cell_of.items():
            meeting = [p for p in places if address < p + size and p < address + width]
            if meeting:
                exact = len(places) == 1 and meeting[0] == address and width == size
                if not exact or value is None:
                    self._blur(range(address, address + width))
                found.append((cell, value if exact else None))
        return found

    # ---- races -------------------------------------------------------------------------------------------------------

    def _log(self, member: int, logged: list[Logged], threads: tuple[int, ...], state: State) -> None:
        """Compare what an instance has just done with all that the others have done before."""
        if not logged:
            return
        mine, behind = self.result.entries[member], self.result.behind[member]
        for each in logged:
            if mine.get(each.entry, True) and not (state.stale and each.entry in mine):
                mine[each.entry], behind[each.entry] = state.stale, state
        for other, number in enumerate(threads):
            key = (id(logged), number, other, state.stale)
            if other == member or key in self._compared:
                continue
            self._compared.add(key)
            before = self.threads[number]
            for each in logged:
                for entry in (*before.settled, *before.open):
                    self._compare(other, entry, member, each, state)

    def _compare(self, other: int, entry: Entry, member: int, new: Logged, state: State) -> None:
        meeting = self.footprints.between_programs(entry.footprint, new.entry.footprint)
        if meeting is None or (entry.strict != UNSTAMPED and new.strict[other] > entry.strict):
            return
        # Atomics on tiles need not order the two: what they observe decides nothing here, so they may come in any order.
        maybe = entry.lenient != UNSTAMPED and new.lenient[other] > entry.lenient
        doubtful = maybe or not meeting.certain or state.stale
        key = (other, member, entry.footprint, new.entry.footprint, entry.iterations, new.entry.iterations, doubtful)
        if key in self._pairs_seen:
            return
        self._pairs_seen.add(key)
        pair = Pair((other, member), (entry, new.entry), meeting, state.steps())
        (self.result.doubts if doubtful else self.result.races).append(pair)
