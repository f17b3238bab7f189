"""Runs one program instance from one synchronising atomic to the next, logging what it touches and under which clocks."""

from __future__ import annotations

from typing import assert_never

import numpy as np

from racefree.access import Kind
from racefree.graph.launch import LaunchFacts
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
    Statement,
    While,
    walk,
)
from racefree.proof.memory_model import MemoryModel
from racefree.proof.replay.lanes import Lanes, constant, unknown
from racefree.proof.replay.machine import argument_pattern
from racefree.proof.replay.memory import launch_memory, pointer_roots, storages_of
from racefree.proof.replay.tiles import made
from racefree.proof.schedule.effects import at_least, effect, later, with_count
from racefree.proof.schedule.footprints import Footprints
from racefree.proof.schedule.inside import Insider
from racefree.proof.schedule.relevance import Relevance, may_race, stale_readers
from racefree.proof.schedule.segments import Left, Logged, Observed, Segment
from racefree.proof.schedule.thread import UNSTAMPED, Control, Entry, Frame, Pending, Thread
from racefree.proof.schedule.values import NONE, OLDER, Val, compute, gather, join, opaque
from racefree.proof.schedule.walking import Walker

SMALL_TILE = 16
"""Tiles of at most this many elements may lie in one thread, which then does them in order."""


class Machine:
    """Everything about one launch that stays the same while its instances run."""

    def __init__(
        self,
        program: Program,
        facts: LaunchFacts,
        relevance: Relevance,
        footprints: Footprints,
        model: MemoryModel,
        insider: Insider,
        max_steps: int,
    ) -> None:
        self.program = program
        self.facts = facts
        self.relevance = relevance
        self.footprints = footprints
        self.model = model
        self.insider = insider
        self.max_steps = max_steps
        self.walker = Walker(program, relevance, max_steps)
        self.memory = launch_memory(program, facts)
        self.racing = may_race(program, facts)
        self.stale = stale_readers(program)
        self._roots = pointer_roots(program)
        self.contents_read = False
        self.spent = 0
        self._identity = [s for s in walk(program.body) if isinstance(s, Op) and s.name == "tt.get_program_id"]

    # ---- starting and resuming ---------------------------------------------------------------------------------------

    def start(self, pid: tuple[int, int, int], member: int, members: int) -> Segment:
        """Instance `pid`, number `member` of `members` that may meet, up to its first synchronising atomic."""
        zero = (0,) * members
        thread = Thread([Frame(self.program.body, Control(zero))], {}, zero, zero, zero)
        thread.member = member
        for parameter in self.program.parameters:
            pattern = argument_pattern(parameter, self.facts.arguments.get(parameter.name))
            value = parameter.value
            lanes = unknown(value.shape) if pattern is None else constant(pattern, value)
            self.walker.bind(thread, (value,), [Val(lanes, NONE, NONE, NONE, zero)])
        for op in self._identity:
            if op.results[0].index in self.relevance.values:
                thread.env[op.results[0].index] = Val(
                    made(op, pid, self.facts.grid, track=False), NONE, NONE, NONE, zero
                )
        segment = Segment(thread)
        self._run(segment)
        return segment

    def resume(self, before: Thread, seen: Observed, member: int) -> tuple[Segment, Left | None]:
        """The pending atomic of number `member` happens, reading `seen`; then the instance runs on."""
        thread = before.fork()
        thread.member = member
        segment = Segment(thread)
        left = self._atomic(segment, seen)
        self.walker.next(thread)
        self._run(segment)
        return segment, left

    def may_read_stale(self, address: int, size_bytes: int) -> bool:
        """True when some atomic that may be done by a plain read can touch these bytes."""
        for index in self.stale:
            names = self._roots[index]
            own = {k: v for k, v in self.facts.arguments.items() if names is None or k in names}
            held = storages_of(LaunchFacts(self.facts.kernel, self.facts.grid, own))
            if names is None or any(s.address < address + size_bytes and address < s.address + s.nbytes for s in held):
                return True
        return False

    # ---- one atomic --------------------------------------------------------------------------------------------------

    def _atomic(self, segment: Segment, seen: Observed) -> Left | None:
        thread, pending = segment.thread, segment.thread.pending
        assert pending is not None
        access = pending.access
        thread.pending = None
        if access.kind is Kind.LOAD:
            self._read(segment, access, pending.address, seen)
            return None
        assert access.sem is not None
        assert access.scope is not None
        broad = access.scope.spans_programs
        if access.sem.releases and self.model.barrier_before_release:
            thread.fence()
        zero = (0,) * len(thread.everyone)
        acquired = zero
        if access.sem.acquires and broad:
            acquired = seen.strict
            thread.first = join(thread.first, seen.strict)
            thread.lenient = join(thread.lenient, seen.lenient)
            thread.seen = later(thread.seen, seen.seen)
        thread.seen = at_least(thread.seen, seen.cell, seen.position)
        number = thread.reads
        uses = self._uses(thread, access)
        address = np.array([pending.address], dtype=np.int64)
        self._touch(segment, access, address, np.zeros(1, np.int64), np.ones(1, np.bool_))
        value, changed = effect(access, seen.value, pending.operands)
        left = self._publish(thread, access, seen, value, uses) if changed else None
        if changed and not access.sem.releases:
            behind = uses.all_reads | thread.frames[-1].control.reads
            if any(cell != seen.cell and n not in behind for cell, n in thread.unordered):
                segment.hazard = access.site
        elif not changed and access.sem.releases and broad:
            publication = with_count(thread.lenient, thread.member, thread.epoch + 1)
            lenient = join(seen.lenient, publication)
            if lenient != seen.lenient:
                left = Left(False, value, seen.strict, lenient, seen.seen)
        if not access.sem.acquires:
            thread.unordered |= {(seen.cell, number)}
        if access.sem.acquires and self.model.barrier_after_acquire:
            thread.fence()
        if access.result is not None:
            lanes = unknown(()) if seen.value is None else constant(seen.value, access.result)
            self.walker.bind(thread, (access.result,), [Val(lanes, frozenset((number,)), NONE, NONE, acquired)])
        return left

    def _read(self, segment: Segment, access: Access, address: int, seen: Observed) -> None:
        """A plain load sees the newest write: one that is not ordered before it, or after, is a race and reported as such."""
        thread = segment.thread
        number = thread.reads
        uses = self._uses(thread, access)
        self._touch(segment, access, np.array([address], dtype=np.int64), np.zeros(1, np.int64), np.ones(1, np.bool_))
        assert access.result is not None
        lanes = unknown(()) if seen.value is None else constant(seen.value, access.result)
        self.walker.bind(
            thread, (access.result,), [Val(lanes, uses.lane | {number}, uses.every, uses.maybe, uses.acquired)]
        )

    def _publish(self, thread: Thread, access: Access, seen: Observed, value: int | None, uses: Val) -> Left:
        """A write that changed the value: it continues the release sequence, and may release itself."""
        assert access.sem is not None
        assert access.scope is not None
        zero = (0,) * len(thread.everyone)
        thread.seen = at_least(thread.seen, seen.cell, seen.newest + 1)
        if not access.scope.spans_programs:
            return Left(True, value, zero, seen.lenient, ())
        strict, lenient, known = seen.strict, seen.lenient, seen.seen
        if access.sem.releases:
            thread.open = tuple(self._published(e, uses, thread.epoch) for e in thread.open)
            strict = join(strict, with_count(thread.first, thread.member, thread.epoch + 1))
            lenient = join(lenient, with_count(thread.lenient, thread.member, thread.epoch + 1))
            known = later(known, thread.seen)
            thread.epoch += 1
        return Left(True, value, strict, lenient, known)

    def _published(self, entry: Entry, uses: Val, epoch: int) -> Entry:
        perhaps = entry.read in uses.all_reads or not self.model.known
        return entry._replace(lenient=epoch) if entry.lenient == UNSTAMPED and perhaps else entry

    # ---- running -----------------------------------------------------------------------------------------------------

    def _run(self, segment: Segment) -> None:
        thread = segment.thread
        while thread.frames and thread.stuck is None:
            self.spent += 1
            thread.steps += 1
            frame = thread.frames[-1]
            if frame.at >= len(frame.body):
                self.walker.leave(segment, frame)
                continue
            statement = frame.body[frame.at]
            if thread.steps > self.max_steps:
                self.walker.stop(thread, "schedule-budget", "one program instance takes too many steps", statement.site)
            elif isinstance(statement, Access):
                if self._access(segment, statement):
                    return
            else:
                self._statement(segment, statement)
        thread.retire()

    def _statement(self, segment: Segment, statement: Statement) -> None:
        thread = segment.thread
        match statement:
            case Op() | Data():
                self._pure(thread, statement)
                self.walker.next(thread)
            case Barrier():
                if statement.global_read and statement.global_write:
                    thread.fence()
                self.walker.next(thread)
            case Assume():
                self.walker.next(thread)
            case Guard() | If():
                self.walker.branch(thread, statement)
            case For():
                self.walker.enter_for(thread, statement)
            case While():
                self.walker.enter_while(thread, statement)
            case Access():
                raise AssertionError("accesses are handled by the caller")
            case _:
                assert_never(statement)

    def _pure(self, thread: Thread, statement: Op | Data) -> None:
        zero = (0,) * len(thread.everyone)
        wanted = self.relevance.values
        if isinstance(statement, Data):
            results = opaque(statement, [self.walker.get(thread, o) for o in statement.operands], wanted, zero)
        elif statement.name == "tt.get_program_id":
            return
        elif not statement.operands and len(statement.results) == 1:
            value = statement.results[0]
            lanes = made(statement, (0, 0, 0), self.facts.grid, track=False) if value.index in wanted else None
            if lanes is None and value.index in wanted:
                lanes = unknown(value.shape)
            results = [Val(lanes, NONE, NONE, NONE, zero)]
        else:
            results = compute(statement, [self.walker.get(thread, o) for o in statement.operands], wanted, zero)
        self.walker.bind(thread, statement.results, results)

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def _access(self, segment: Segment, access: Access) -> bool:
        """Do an access, or stop before it and return true if it is a synchronising atomic that happens."""
        thread = segment.thread
        pointer = self.walker.lanes(thread, access.pointer)
        mask = None if access.mask is None else self.walker.lanes(thread, access.mask)
        shape = access.pointer.shape
        on = np.ones(shape, np.bool_) if mask is None else np.broadcast_to(~mask.known | (mask.bits != 0), shape)
        if bool((on & ~pointer.known).any()):
            self.walker.stop(thread, "indirect-address", "the address of an access is not known", access.site)
            return False
        sure = on if mask is None else on & np.broadcast_to(mask.known, shape)
        steps = access.kind.atomic or access.index in self.racing
        if access.index in self.relevance.synchronising and steps and bool(on):
            if not bool(sure):
                self.walker.stop(thread, "control-flow", "whether an atomic happens is not known", access.site)
                return False
            operands = tuple(self.walker.lanes(thread, o).scalar() for o in access.operands)
            thread.pending = Pending(access, int(np.asarray(pointer.bits).view(np.int64)), operands)
            return True
        addresses = np.asarray(pointer.bits).view(np.int64)
        if bool(on.any()) and access.index in self.racing:
            flat = np.nonzero(on.reshape(-1))[0].astype(np.int64)
            self._touch(segment, access, addresses.reshape(-1)[flat], flat, sure.reshape(-1)[flat])
            self._stored(segment, access, addresses.reshape(-1)[flat])
        self._loaded(thread, access, addresses, sure, mask)
        self.walker.next(thread)
        return False

    def _stored(self, segment: Segment, access: Access, addresses: np.ndarray) -> None:
        if not access.kind.writes or not self.relevance.synchronising:
            return
        value = None
        if access.kind is Kind.STORE and access.shape == ():
            known = self.walker.get(segment.thread, access.operands[0]).lanes
            value = None if known is None else known.scalar()
        places = tuple(int(a) for a in np.unique(addresses))
        segment.stores.append((places, access.element_bytes, value))

    def _loaded(
        self, thread: Thread, access: Access, addresses: np.ndarray, sure: np.ndarray, mask: Lanes | None
    ) -> None:
        """Bind the result of a load (its recorded contents, if nothing writes there) or of an atomic (unknown)."""
        result = access.result
        if result is None:
            return
        number = thread.reads - 1 if bool(sure.any()) and access.index in self.racing else OLDER
        lanes: Lanes | None = None
        if result.index in self.relevance.values:
            lanes = unknown(result.shape)
            if access.kind is Kind.LOAD:
                lanes = self.memory.read(addresses, sure, access.element_bytes, result.element)
                self.contents_read = self.contents_read or bool(lanes.known.any())
                if access.other is not None and mask is not None:
                    other = self.walker.lanes(thread, access.other)
                    off = np.broadcast_to(mask.known & (mask.bits == 0), result.shape)
                    bits = np.where(off, other.bits, lanes.bits)
                    lanes = Lanes(bits, np.where(off, np.broadcast_to(other.known, result.shape), lanes.known))
        uses = self._uses(thread, access)
        lane, every, maybe, acquired = uses.lane, uses.every, uses.maybe, uses.acquired
        if not bool(sure.all()):  # where it does not run, its result does not hang on what led to it
            lane, every, maybe, acquired = NONE, NONE, uses.all_reads, (0,) * len(thread.everyone)
        self.walker.bind(thread, (result,), [Val(lanes, lane | {number}, every, maybe, acquired)])

    def _touch(self, segment: Segment, access: Access, addresses, lanes, sure) -> None:  # type: ignore[no-untyped-def]
        """Log one execution: its footprint, the clocks it runs under, and what it meets inside its own instance."""
        thread = segment.thread
        control = thread.frames[-1].control
        uses = self._uses(thread, access)
        scalar = access.shape == ()
        by_first = scalar and access.kind.writes
        strict = join(join(thread.first if by_first else thread.everyone, uses.acquired), control.acquired)
        small = access.pointer.shape == () or int(np.prod(access.pointer.shape)) <= SMALL_TILE
        read = OLDER
        if access.result is not None:
            read, thread.reads = thread.reads, thread.reads + 1
        footprint = self.footprints.intern(access, addresses, lanes, sure)
        entry = Entry(
            footprint.number,
            read,
            thread.epoch if by_first else UNSTAMPED,
            thread.epoch if small or not self.model.known else UNSTAMPED,
            tuple(f.iteration for f in thread.frames if isinstance(f.owner, For | While)),
        )
        self.insider.check(thread.open, entry, uses, control.reads)
        if entry not in thread.open:
            thread.open = (*thread.open, entry)
        segment.logged.append(Logged(entry, strict, thread.lenient))

    # ---- values ------------------------------------------------------------------------------------------------------

    def _uses(self, thread: Thread, access: Access) -> Val:
        """What lane i of an access depends on, through its address, mask and written values."""
        parts = (access.pointer, access.mask, access.other, *access.operands)
        same = [self.walker.get(thread, v) for v in parts if v is not None]
        lane, every, maybe, acquired = gather(same, (0,) * len(thread.everyone))
        return Val(None, lane, every, maybe, acquired)
