"""The order that a program's semaphores, its timelines and its barriers give: what every execution has in common.

Counters that only grow make this exact. A wait orders its step after whatever the counter cannot reach the value without,
so updates that may or may not have happened order nothing, and joint effects of several semaphores count. A reset cuts a
semaphore into counters of their own; that is right only when everything before the reset must have happened before it and
nothing after it can happen earlier, which is checked on the resulting order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from racefree.engines import counters as counting
from racefree.engines.compiled import in_parallel, kernel
from racefree.engines.counters import Counters
from racefree.engines.fixed_waits import FixedWaits, fixed_waits
from racefree.engines.grouping import gathered
from racefree.engines.kernels import simulate
from racefree.engines.order import Order, QueueOrder, asynchronous_rows
from racefree.engines.program import I32, I64, Timing, WaitMode
from racefree.engines.timeline import NEVER, Ragged, Timelines
from racefree.errors import Refused

SHARES = 8
"""Parts into which the classes of asynchronous steps are cut, to be worked on side by side."""


@dataclass(frozen=True, slots=True, eq=False)
class SemaphoreOrder:
    """The order, the counters it was found with, and the waits as edges where that is all they are."""

    order: Order
    counters: Counters
    fixed: FixedWaits | None

    def assuming(self, queue_order: QueueOrder) -> Order:
        """The order of the same steps under another assumption about queues."""
        sequence = self.order.sequence
        found = None if self.fixed is None else self.fixed.order(queue_order)
        return found or _simulated(self.order.timelines, self.counters, sequence, queue_order)

    def peak(self) -> I64:
        """For each wait, the largest value its counter can have while it waits."""
        return _clocks(self.order.timelines, self.counters)[1]


@dataclass(frozen=True, slots=True)
class StuckWait:
    """A wait that no execution gets past: the counter never exceeds `reached`."""

    step: int
    semaphore: int
    value: int
    reached: int


class Deadlock(Refused):
    """The program cannot finish by its semaphores; `waits` are where its engines stop."""

    def __init__(self, reason: str, waits: tuple[StuckWait, ...]) -> None:
        super().__init__("semaphore-deadlock", reason)
        self.waits = waits


def semaphore_order(timelines: Timelines, *, queue_order: QueueOrder = QueueOrder.IGNORED) -> SemaphoreOrder:
    """Happens-before by semaphores, exact for counters that only grow between resets.

    Raises Deadlock when the program cannot finish, and Refused for unknown modes, for resets that are not fenced, for
    waits for an exact value that the counter may pass.
    """
    counters = counting.count(timelines)
    sequence = _execution(timelines, counters)
    fixed = fixed_waits(timelines, counters, sequence)
    order = None if fixed is None else fixed.order(queue_order)
    if order is None:
        order = _simulated(timelines, counters, sequence, queue_order)
    _refuse_unfenced_resets(order, counters)
    return SemaphoreOrder(order, counters, fixed)


def _simulated(timelines: Timelines, counters: Counters, sequence: I32, queue_order: QueueOrder) -> Order:
    """The order of any waits, by holding back one engine, then one transfer at a time.

    O(n * (engines + classes of asynchronous steps)) time.
    """
    clock, peak = _clocks(timelines, counters)
    _refuse_passed_values(timelines, counters, peak)
    row = asynchronous_rows(timelines)
    done = _done(timelines, counters, sequence, row, queue_order, hold_reads=False)
    read = done
    if (counters.timing == Timing.INPUTS_READ).any():
        read = _done(timelines, counters, sequence, row, queue_order, hold_reads=True)
    return Order(timelines, sequence, clock, row, done, read)


def _execution(timelines: Timelines, counters: Counters) -> I32:
    order = np.empty(len(timelines), dtype=np.int32)
    lines = timelines.streams
    length = kernel(simulate.execute, len(timelines))(
        lines.starts, lines.values, counters.waits, counters.wait_counter, counters.wait_value,
        counters.updates, counters.counter, counters.amount, timelines.group, timelines.group_size, counters.initial, order,
    )  # fmt: skip
    if length < len(timelines):
        raise _deadlock(timelines, counters, order[:length])
    return order


def _deadlock(timelines: Timelines, counters: Counters, ran: I32) -> Deadlock:
    started = np.zeros(len(timelines), dtype=bool)
    started[ran] = True
    values = counters.initial.copy()
    owner = np.repeat(np.arange(len(timelines)), np.diff(counters.updates))
    happened = started[owner] & (timelines.group[owner] < 0)
    np.add.at(values, counters.counter[happened], counters.amount[happened])
    stuck: list[StuckWait] = []
    for engine in range(len(timelines.program.engines)):
        steps = timelines.streams.values[timelines.streams.starts[engine] : timelines.streams.starts[engine + 1]]
        behind = np.flatnonzero(~started[steps])
        if not len(behind):
            continue
        step = int(steps[behind[0]])
        for w in range(int(counters.waits[step]), int(counters.waits[step + 1])):
            counter, value = int(counters.wait_counter[w]), int(counters.wait_value[w])
            if values[counter] < value:
                stuck.append(StuckWait(step, int(counters.semaphore[counter]), value, int(values[counter])))
    return Deadlock(_deadlock_reason(timelines, stuck), tuple(stuck))


def _deadlock_reason(timelines: Timelines, stuck: list[StuckWait]) -> str:
    if not stuck:
        return "the engines wait for each other at a barrier that not all of them reach"
    first, program = stuck[0], timelines.program
    name = program.names[int(timelines.instruction[first.step])]
    semaphore = program.semaphores[first.semaphore]
    return f"instruction {name!r} waits for {first.value} on semaphore {semaphore}, which never exceeds {first.reached}"


def _clocks(timelines: Timelines, counters: Counters) -> tuple[I32, I64]:
    engines, lines = len(timelines.program.engines), timelines.streams
    columns = np.zeros((engines, len(timelines)), dtype=np.int32)
    peak = np.zeros(len(counters.wait_value), dtype=np.int64)
    run = kernel(simulate.lazy, len(timelines))
    calls = [
        partial(
            run, engine, lines.starts, lines.values, counters.waits, counters.wait_counter, counters.wait_value,
            counters.updates, counters.counter, counters.amount, counters.timing, timelines.group, timelines.group_size,
            timelines.asynchronous, counters.initial, columns[engine], peak,
        )
        for engine in range(engines)
    ]  # fmt: skip
    in_parallel(calls, len(timelines) * engines)
    return np.ascontiguousarray(columns.T), peak


def _refuse_passed_values(timelines: Timelines, counters: Counters, peak: I64) -> None:
    exact = timelines.program.waits.mode[counters.wait_row] == WaitMode.EQUAL
    passed = np.flatnonzero(exact & (peak > counters.wait_value))
    if len(passed):
        wait = int(counters.wait_row[passed[0]])
        name = timelines.program.names[int(timelines.program.waits.instruction[wait])]
        reason = f"instruction {name!r} waits for exactly {int(counters.wait_value[passed[0]])}, which may be passed"
        raise Refused("semaphore-exact-value", reason)


def _done(
    timelines: Timelines,
    counters: Counters,
    sequence: I32,
    row: I32,
    queue_order: QueueOrder,
    *,
    hold_reads: bool,
) -> I32:
    engines = len(timelines.program.engines)
    table = np.full((int(row.max(initial=-1)) + 1, engines), NEVER, dtype=np.int32)
    in_order = queue_order is not QueueOrder.IGNORED
    queue = timelines.program.instructions.queue[timelines.instruction]
    queued = in_order & (queue >= 0)
    keys = _signatures(timelines, counters)
    signals = keys >= 0
    if hold_reads:
        signals &= ~queued
    passes = [(signals & ~queued & (row >= 0), keys, False)]
    if in_order:
        chains = queue.astype(np.int64) * engines + timelines.engine
        passes.append((queued & (row >= 0), chains, True))
    for chosen, key, chained in passes:
        members, classes, class_of, rank = _classes(timelines, sequence, chosen, key)
        if not len(members):
            continue
        found = np.full((len(members), engines), NEVER, dtype=np.int32)
        lines = timelines.streams
        count = len(classes) - 1
        run = kernel(simulate.withheld, len(timelines) * count // 8)
        parts = [(count * part // SHARES, count * (part + 1) // SHARES) for part in range(SHARES)]
        calls = [
            partial(
                run, lines.starts, lines.values, counters.waits, counters.wait_counter, counters.wait_value, counters.updates,
            counters.counter, counters.amount, counters.timing, timelines.group, timelines.group_size, timelines.engine,
            counters.initial, sequence, low, high, classes, members, class_of, rank, chained, hold_reads, found,
            )
            for low, high in parts
            if low < high
        ]  # fmt: skip
        in_parallel(calls, len(timelines) * count)
        table[row[members]] = found
    return table


def _signatures(timelines: Timelines, counters: Counters) -> I64:
    """Numbers the asynchronous steps by issuing engine and updates; -1 where a step signals nothing."""
    sizes = np.diff(counters.updates)
    key = np.where((timelines.asynchronous != 0) & (sizes > 0), timelines.engine, -1).astype(np.int64)
    for turn in range(int(sizes.max(initial=0))):
        has = np.flatnonzero((sizes > turn) & (key >= 0))
        at = counters.updates[has] + turn
        columns = (
            key[has],
            counters.counter[at].astype(np.int64),
            counters.amount[at],
            counters.timing[at].astype(np.int64),
        )
        order = np.lexsort(columns[::-1])
        fresh = np.zeros(len(order), dtype=np.int64)
        for column in columns:
            fresh[1:] |= column[order][1:] != column[order][:-1]
        key[has[order]] = np.cumsum(fresh) + int(key.max(initial=0)) + 1
    return key


def _classes(
    timelines: Timelines, sequence: I32, chosen: npt.NDArray[np.bool_], key: npt.NDArray[np.integer]
) -> tuple[I32, I64, I32, I32]:
    """Chosen steps by key, each class in the order of `sequence`, classes by their first step."""
    place = np.empty(len(sequence), dtype=np.int64)
    place[sequence] = np.arange(len(sequence))
    steps = np.flatnonzero(chosen)
    steps = steps[np.lexsort((place[steps], key[steps]))]
    fresh = np.ones(len(steps), dtype=bool)
    fresh[1:] = key[steps][1:] != key[steps][:-1]
    number = np.cumsum(fresh) - 1
    by_first = np.argsort(place[steps[fresh]], kind="stable")
    new_number = np.empty(len(by_first), dtype=np.int64)
    new_number[by_first] = np.arange(len(by_first))
    classes: Ragged = gathered(new_number[number].astype(np.int32), steps.astype(np.int32), len(by_first))
    class_of = np.full(len(timelines), -1, dtype=np.int32)
    rank = np.zeros(len(timelines), dtype=np.int32)
    sizes = np.diff(classes.starts)
    class_of[classes.values] = np.repeat(np.arange(len(by_first)), sizes).astype(np.int32)
    rank[classes.values] = (np.arange(len(steps)) - np.repeat(classes.starts[:-1], sizes)).astype(np.int32)
    return classes.values, classes.starts, class_of, rank


def _refuse_unfenced_resets(order: Order, counters: Counters) -> None:
    """Everything on a counter must precede each reset that ends it, and follow each reset that opened it."""
    if not len(counters.op_step):
        return
    resets = np.flatnonzero(counting.is_reset(counters.op_kind))
    by_counter = gathered(counters.op_counter[resets], resets.astype(np.int32), len(counters.initial))
    same_next = np.zeros(len(counters.initial), dtype=bool)
    same_next[:-1] = counters.semaphore[1:] == counters.semaphore[:-1]
    opened_by_next = np.where(same_next[counters.op_counter], counters.op_counter + 1, -1)
    earlier, closing = _pairs(opened_by_next, by_counter)
    later, opening = _pairs(np.where(counting.is_reset(counters.op_kind), -1, counters.op_counter), by_counter)
    _require(order, counters, earlier, closing, _precedes(order, counters, earlier, closing))
    _require(order, counters, later, opening, _follows(order, counters, later, opening))


def _pairs(counter: npt.NDArray[np.integer], resets: Ragged) -> tuple[I64, I64]:
    """Operations, and each reset that opens the counter given for them (-1: none)."""
    sizes = np.where(counter >= 0, np.diff(resets.starts)[counter], 0)
    operation = np.repeat(np.arange(len(counter)), sizes)
    inner = np.arange(len(operation)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return operation, resets.values[resets.starts[counter[operation]] + inner].astype(np.int64)


def _precedes(order: Order, counters: Counters, operation: I64, reset: I64) -> npt.NDArray[np.bool_]:
    lines = order.timelines
    step, target = counters.op_step[operation], counters.op_step[reset]
    waits = counting.is_wait(counters.op_kind)[operation]
    lead = np.where(waits, 1, np.where(counters.op_late[operation] == 1, 3, 2))
    known = order.clock[target, lines.engine[step]] >= 3 * lines.position[step].astype(np.int64) + lead
    asynchronous = (order.row[step] >= 0) & ~waits
    table = (
        np.where((counters.op_late[operation] == 1)[:, None], order.done[order.row[step]], order.read[order.row[step]])
        if (len(order.done))
        else np.full((len(step), order.clock.shape[1]), NEVER)
    )
    off_timeline = table[np.arange(len(step)), lines.engine[target]] <= lines.position[target]
    earlier_here = (
        waits & (lines.engine[step] == lines.engine[target]) & (lines.position[step] <= lines.position[target])
    )
    answer: npt.NDArray[np.bool_] = np.where(asynchronous, off_timeline, known | earlier_here)
    return answer


def _follows(order: Order, counters: Counters, operation: I64, reset: I64) -> npt.NDArray[np.bool_]:
    """A step's own wait must not be what makes it follow the reset, so look where its engine comes from."""
    lines = order.timelines
    step, source = counters.op_step[operation], counters.op_step[reset]
    before = lines.previous[step]
    meeting = np.where(before >= 0, lines.group[before], -1)
    reached = np.where((before >= 0)[:, None], order.clock[before], 0)
    hub = np.zeros((len(lines.group_size) + 1, order.clock.shape[1]), dtype=np.int32)
    members = np.flatnonzero(lines.group >= 0)
    np.maximum.at(hub, lines.group[members], order.clock[members])
    reached = np.maximum(reached, hub[meeting])
    rows = np.arange(len(step))
    known = reached[rows, lines.engine[source]] >= 3 * lines.position[source].astype(np.int64) + 3
    known |= (lines.engine[step] == lines.engine[source]) & (lines.position[step] > lines.position[source])
    if len(order.done):
        off_timeline = (before >= 0) & (
            order.done[order.row[source], lines.engine[step]] <= np.where(before >= 0, lines.position[before], -1)
        )
        known = np.where(order.row[source] >= 0, off_timeline, known)
    answer: npt.NDArray[np.bool_] = known
    return answer


def _require(order: Order, counters: Counters, operation: I64, reset: I64, holds: npt.NDArray[np.bool_]) -> None:
    broken = np.flatnonzero(~holds)
    if not len(broken):
        return
    at = int(broken[0])
    program, lines = order.timelines.program, order.timelines
    user = program.names[int(lines.instruction[counters.op_step[operation[at]]])]
    resetter = program.names[int(lines.instruction[counters.op_step[reset[at]]])]
    semaphore = program.semaphores[int(counters.semaphore[counters.op_counter[operation[at]]])]
    reason = f"{resetter!r} resets semaphore {semaphore}, and nothing orders that against its use by {user!r}"
    raise Refused("unfenced-semaphore-reset", reason)
