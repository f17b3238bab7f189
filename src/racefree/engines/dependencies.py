"""The order that a program's dependency edges, its timelines and its barriers give."""

from __future__ import annotations

import numpy as np

from racefree.engines.compiled import kernel
from racefree.engines.graph import Graph, edges_out, graph, graph_order, group_members
from racefree.engines.kernels import clocks
from racefree.engines.order import Order, QueueOrder
from racefree.engines.program import I32
from racefree.engines.timeline import NEVER, Timelines
from racefree.errors import Refused


def dependency_order(timelines: Timelines, *, queue_order: QueueOrder = QueueOrder.IGNORED) -> Order:
    """Happens-before by dependencies. Raises Refused ("dependency-cycle") when a step would have to precede itself.

    A dependency leaves its source at completion.
    """
    return in_queue_order(dependency_graph(timelines), queue_order)


def dependency_graph(timelines: Timelines) -> Graph:
    """The dependencies between steps. Raises Refused ("dependency-cycle")."""
    return graph(timelines, _sequence(timelines), timelines.edge_source, timelines.edge_target, timelines.edge_issue)


def in_queue_order(edges: Graph, queue_order: QueueOrder) -> Order:
    """Happens-before by dependencies, under an assumption about queues."""
    lines = edges.timelines
    if queue_order is QueueOrder.IGNORED:
        return graph_order(edges)
    return graph_order(edges, lines.program.instructions.queue[lines.instruction], len(lines.program.queues))


def _sequence(timelines: Timelines) -> I32:
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
    outgoing, _ = edges_out(timelines, timelines.edge_source, timelines.edge_target, timelines.edge_issue)
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
