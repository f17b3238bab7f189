"""A smallest set of order edges that would make a program clean: none of them follows from the others."""

from __future__ import annotations

import numpy as np

from racefree.engines.compiled import kernel
from racefree.engines.grouping import gathered
from racefree.engines.kernels import repair as kernels
from racefree.engines.order import Order
from racefree.engines.program import I64
from racefree.engines.records import MissingEdge


def missing_edges(order: Order, rows: I64) -> list[MissingEdge]:
    """Edges (completion of one step, start of a later one) that order every racing pair of `rows` (see RacingAccesses).

    Each edge orders a pair that races, and is needed: it is the transitive reduction of the order with all pairs added.
    Edges between the same instructions at the same loop distance are listed once.
    """
    lines = order.timelines
    pairs = np.unique(rows[:, [0, 2]], axis=0) if len(rows) else np.zeros((0, 2), dtype=np.int64)
    place = np.empty(len(lines), dtype=np.int64)
    place[order.sequence] = np.arange(len(lines))
    later_first = np.lexsort((-place[pairs[:, 0]], pairs[:, 1]))
    source, target = pairs[later_first, 0].astype(np.int32), pairs[later_first, 1].astype(np.int32)
    wanted = gathered(target, source, len(lines))
    edges = np.empty((len(pairs), 2), dtype=np.int32)
    count = kernel(kernels.add_edges, len(lines))(
        order.sequence, lines.engine, lines.position, lines.previous, order.row, lines.streams.starts, lines.streams.values,
        wanted.starts, wanted.values, order.clock.copy(), order.done.copy(), edges,
    )  # fmt: skip
    return _named(order, edges[:count].astype(np.int64))


def _named(order: Order, edges: I64) -> list[MissingEdge]:
    lines = order.timelines
    program = lines.program
    ends = lines.instruction[edges[:, 0]].tolist(), lines.instruction[edges[:, 1]].tolist()
    seen = set(zip(*ends, lines.distance(edges[:, 0], edges[:, 1]).tolist(), strict=True))
    return [
        MissingEdge(
            source=program.names[source],
            target=program.names[target],
            source_engine=program.engines[program.instructions.engine[source]],
            target_engine=program.engines[program.instructions.engine[target]],
            distance=distance,
        )
        for source, target, distance in sorted(seen)
    ]
