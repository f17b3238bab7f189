"""The order that a program's dependency edges, its timelines and its barriers give."""

from __future__ import annotations

import numpy as np

from racefree.engines.compiled import kernel
from racefree.engines.kernels import clocks
from racefree.engines.order import Order, QueueOrder, asynchronous_rows
from racefree.engines.program import I32, I64
from racefree.engines.timeline import NEVER, Ragged, Timelines
from racefree.errors import Refused


def dependency_order(timelines: Timelines, *, queue_order: QueueOrder = QueueOrder.IGNORED) -> Order:
    """Happens-before by dependencies. Raises Refused ("dependency-cycle") when a step would have to precede itself.

    A dependency leaves its source at completion. O((n + edges) * engines) time, two tables of n x engines int32.
    """
    count, engines = len(timelines), len(timelines.program.engines)
    row = asynchronous_rows(timelines)
    rows = int(row.max(initial=-1)) + 1
    queue = np.full(count, -1, dtype=np.int32)
    if queue_order is not QueueOrder.IGNORED:
        queue = np.where(row >= 0, timelines.program.instructions.queue[timelines.instruction], -1).astype(np.int32)
    queues = len(timelines.program.queues)
    edges = np.arange(len(timelines.edge_source), dtype=np.int32)
    into = gathered(timelines.edge_target, edges, count)
    incoming, into_issue = Ragged(into.starts, timelines.edge_source[into.values]), timelines.edge_issue[into.values]
    out = gathered(timelines.edge_source, edges, count)
    outgoing, out_issue = Ragged(out.starts, timelines.edge_target[out.values]), timelines.edge_issue[out.values]
    sequence = _sequence(timelines, outgoing)
    clock = np.zeros((count, engines), dtype=np.int32)
    groups = len(timelines.group_size)
    lines = timelines
    kernel(clocks.forward, count)(
        sequence, lines.engine, lines.position, lines.previous, incoming.starts, incoming.values, into_issue,
        lines.group, groups, queue, queues, row, rows if (queue >= 0).any() else 0, clock,
    )  # fmt: skip
    done = np.full((rows, engines), NEVER, dtype=np.int32)
    if rows:
        after = np.full((count, engines), NEVER, dtype=np.int32)
        kernel(clocks.backward, count)(
            sequence, lines.engine, lines.position, lines.previous, lines.following,
            outgoing.starts, outgoing.values, out_issue, incoming.starts, incoming.values, into_issue,
            lines.group, groups, queue, queues, row, after, done,
        )  # fmt: skip
    return Order(timelines, sequence, clock, row, done, done)


def gathered(keys: I32, values: I32, count: int) -> Ragged:
    """The values of each key, in their given order."""
    if len(keys) and not (np.diff(keys) >= 0).all():
        arranged = np.argsort(keys, kind="stable")
        values, keys = values[arranged], keys[arranged]
    starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))]).astype(np.int64)
    return Ragged(starts, values)


def group_members(timelines: Timelines) -> tuple[I64, I32]:
    """The steps of each rendezvous: (starts, members)."""
    members = np.flatnonzero(timelines.group >= 0).astype(np.int32)
    arranged = gathered(timelines.group[members], members, len(timelines.group_size))
    return arranged.starts, arranged.values


def _sequence(timelines: Timelines, outgoing: Ragged) -> I32:
    count = len(timelines)
    group_start, members = group_members(timelines)
    last = np.zeros(len(timelines.group_size), dtype=np.int32)
    first_after = np.full(len(timelines.group_size), NEVER, dtype=np.int32)
    meeting = timelines.group[members]
    np.maximum.at(last, meeting, members)
    after = timelines.following[members]
    np.minimum.at(first_after, meeting, np.where(after >= 0, after, NEVER).astype(np.int32))
    met = timelines.group[timelines.edge_source]
    np.minimum.at(first_after, met[met >= 0], timelines.edge_target[met >= 0])
    if (timelines.edge_source < timelines.edge_target).all() and (last < first_after).all():
        return np.arange(count, dtype=np.int32)
    order: I32 = kernel(clocks.topological, count)(
        timelines.previous, timelines.following, outgoing.starts, outgoing.values,
        timelines.group, timelines.group_size, members, group_start,
    )  # fmt: skip
    if len(order) < count:
        inside = np.ones(count, dtype=bool)
        inside[order] = False
        name = timelines.program.names[int(timelines.instruction[int(np.flatnonzero(inside)[0])])]
        raise Refused("dependency-cycle", f"instruction {name!r} depends, through others, on itself")
    return order
