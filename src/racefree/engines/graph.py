"""Happens-before of steps that each wait for a fixed set of other steps: clocks forwards, first followers backwards."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from racefree.engines.compiled import kernel
from racefree.engines.grouping import gathered
from racefree.engines.kernels import clocks
from racefree.engines.order import Order, asynchronous_rows
from racefree.engines.program import I32, I64, U8
from racefree.engines.timeline import NEVER, Ragged, Timelines


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The edges into and out of every step; row i of `*_issue` is 1 where an edge leaves the start of its source.

    No edge goes backwards in `sequence`, which lists all steps.
    """

    timelines: Timelines
    sequence: I32
    incoming: Ragged
    into_issue: U8
    outgoing: Ragged
    out_issue: U8


def edges_out(timelines: Timelines, source: I32, target: I32, issue: U8) -> tuple[Ragged, U8]:
    """The targets of each step, and which of those edges leave its start."""
    edges = np.arange(len(source), dtype=np.int32)
    out = gathered(source, edges, len(timelines))
    return Ragged(out.starts, target[out.values]), issue[out.values]


def graph(timelines: Timelines, sequence: I32, source: I32, target: I32, issue: U8) -> Graph:
    """The graph of edges source -> target, of which none may go backwards in `sequence`."""
    incoming, into_issue = edges_out(timelines, target, source, issue)
    outgoing, out_issue = edges_out(timelines, source, target, issue)
    return Graph(timelines, sequence, incoming, into_issue, outgoing, out_issue)


def graph_order(edges: Graph, chain: I32 | None = None, chains: int = 0) -> Order:
    """Happens-before by the edges, the timelines and the barriers.

    Asynchronous steps of one `chain[x]` (-1: none) complete in the order of `sequence`. O((n + edges) * engines) time, two
    tables of n x engines int32.
    """
    lines = edges.timelines
    count, engines, groups = len(lines), len(lines.program.engines), len(lines.group_size)
    row = asynchronous_rows(lines)
    rows = int(row.max(initial=-1)) + 1
    queue = np.full(count, -1, dtype=np.int32) if chain is None else np.where(row >= 0, chain, -1).astype(np.int32)
    clock = np.zeros((count, engines), dtype=np.int32)
    kernel(clocks.forward, count)(
        edges.sequence, lines.engine, lines.position, lines.previous, edges.incoming.starts, edges.incoming.values,
        edges.into_issue, lines.group, groups, queue, chains, row, rows if (queue >= 0).any() else 0, clock,
    )  # fmt: skip
    done = np.full((rows, engines), NEVER, dtype=np.int32)
    if rows:
        after = np.full((count, engines), NEVER, dtype=np.int32)
        kernel(clocks.backward, count)(
            edges.sequence, lines.engine, lines.position, lines.previous, lines.following,
            edges.outgoing.starts, edges.outgoing.values, edges.out_issue,
            edges.incoming.starts, edges.incoming.values, edges.into_issue,
            lines.group, groups, queue, chains, row, after, done,
        )  # fmt: skip
    return Order(lines, edges.sequence, clock, row, done, done)


def group_members(timelines: Timelines) -> tuple[I64, I32]:
    """The steps of each rendezvous: (starts, members)."""
    members = np.flatnonzero(timelines.group >= 0).astype(np.int32)
    arranged = gathered(timelines.group[members], members, len(timelines.group_size))
    return arranged.starts, arranged.values
