"""Finds out whether every wait of a program asks for a fixed set of updates, so that its semaphores are a graph of edges.

That holds where the updates of each counter come in batches, one after the other in every execution, and a wait needs a
whole batch or certain updates of it: the way compilers use semaphores. The batches are taken from one execution, the edges
from the batches, and the order from the edges; then it is checked that this order keeps the batches apart. No circle is
closed that way: in an execution that broke the order, take the first step that starts without one of its edges. Its wait
held, so a later batch of the counter was ahead of an earlier one, against the order, and that happened before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.engines.compiled import kernel
from racefree.engines.counters import Counters
from racefree.engines.graph import Graph, graph, graph_order
from racefree.engines.grouping import stable_order
from racefree.engines.kernels import batches
from racefree.engines.order import Order, QueueOrder
from racefree.engines.program import I32, I64, U8, Timing, WaitMode
from racefree.engines.timeline import Timelines

LOOKS_EACH = 16
"""Looks for each wait and update after which a program is left to the simulation."""


@dataclass(frozen=True, slots=True, eq=False)
class FixedWaits:
    """The waits of a program as edges. Updates are sorted by counter; `ends` is 1 at the last of each batch."""

    edges: Graph
    starts: I64
    step: I32
    timing: U8
    ends: U8

    def order(self, queue_order: QueueOrder) -> Order | None:
        """Happens-before, or None when it does not keep the batches apart."""
        lines = self.edges.timelines
        chain, chains = queue_chains(lines, queue_order)
        order = graph_order(self.edges, chain, chains)
        apart = kernel(batches.consecutive, len(lines))(
            self.starts, self.step, self.timing, self.ends, lines.engine, lines.position, lines.asynchronous, order.row,
            chain, chains, order.clock, order.done, LOOKS_EACH * (len(self.step) + len(lines)),
        )  # fmt: skip
        return order if apart else None


def queue_chains(timelines: Timelines, queue_order: QueueOrder) -> tuple[I32, int]:
    """Which asynchronous steps complete in order (-1: none): those that one engine issued to one queue."""
    program = timelines.program
    engines, queue = len(program.engines), program.instructions.queue[timelines.instruction]
    if queue_order is QueueOrder.IGNORED:
        return np.full(len(timelines), -1, dtype=np.int32), 0
    chained = (queue >= 0) & (timelines.asynchronous != 0)
    chain = np.where(chained, queue * np.int32(engines) + timelines.engine, -1).astype(np.int32)
    return chain, engines * len(program.queues)


def fixed_waits(timelines: Timelines, counters: Counters, sequence: I32) -> FixedWaits | None:
    """The edges of a program whose waits may all be fixed (see `FixedWaits.order`), or None."""
    exact = timelines.program.waits.mode[counters.wait_row] == WaitMode.EQUAL
    if exact.any() or (counters.timing == Timing.INPUTS_READ).any():
        return None
    place = np.empty(len(sequence), dtype=np.int64)
    place[sequence] = np.arange(len(sequence))
    total = len(counters.initial)
    wait_step = np.repeat(np.arange(len(timelines)), np.diff(counters.waits)).astype(np.int32)
    waits = _by_counter(counters.wait_counter, place[wait_step], total)
    update_step = np.repeat(np.arange(len(timelines)), np.diff(counters.updates)).astype(np.int32)
    adds = np.flatnonzero(counters.amount > 0)
    updates = adds[_by_counter(counters.counter[adds], place[update_step[adds]], total)]
    starts = _starts(counters.counter[updates], total)
    step, timing = update_step[updates], counters.timing[updates]
    ends = np.zeros(len(updates), dtype=np.uint8)
    edges = np.empty((4 * (len(waits) + len(updates)), 3), dtype=np.int32)
    count = kernel(batches.needed, len(timelines))(
        _starts(counters.wait_counter[waits], total), counters.wait_value[waits], wait_step[waits],
        starts, step, counters.amount[updates], timing, counters.initial, timelines.engine, timelines.asynchronous,
        len(timelines.program.engines), ends, LOOKS_EACH * (len(waits) + len(updates)), edges,
    )  # fmt: skip
    if count < 0:
        return None
    source, target = edges[:count, 0].copy(), edges[:count, 1].copy()
    return FixedWaits(
        graph(timelines, sequence, source, target, edges[:count, 2].astype(np.uint8)), starts, step, timing, ends
    )


def _by_counter(counter: npt.NDArray[np.integer], place: I64, total: int) -> I64:
    if len(place) and (place[1:] < place[:-1]).any():
        by_place = np.argsort(place, kind="stable")
        return by_place[stable_order(counter[by_place], total)]
    return stable_order(counter, total)


def _starts(counter: npt.NDArray[np.integer], total: int) -> I64:
    """Where each counter begins in rows sorted by counter."""
    return np.concatenate([[0], np.cumsum(np.bincount(counter, minlength=total))]).astype(np.int64)
