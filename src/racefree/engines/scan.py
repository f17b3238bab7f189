"""Finds the races of a program under one order: conflicting accesses of two steps neither of which must precede."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from racefree.engines.compiled import kernel
from racefree.engines.footprints import Conflicts
from racefree.engines.kernels import frontier
from racefree.engines.kernels import scan as kernels
from racefree.engines.order import Order
from racefree.engines.program import I32, I64, U8, AccessFlag

SMALLEST_LIST = 1 << 12
LARGEST_LIST = 10_000_000
"""Racing access pairs held in memory at most; beyond, only their number is known."""


SUSPECTS_FROM = 2_000
"""Steps from which a first pass over all accesses pays."""

MOST_LOOKS = 64
"""Asynchronous accesses of one footprint that the first pass looks at before it leaves them to the second."""


@dataclass(frozen=True, slots=True, eq=False)
class RacingAccesses:
    """Rows (first step, first access, second step, second access), the later step second, sorted; `count` of them exist."""

    rows: I64
    count: int


@dataclass(frozen=True, slots=True, eq=False)
class _Chains:
    chain: I32
    starts: I64
    engine: I32
    writes: U8
    asynchronous: U8
    alive: I32
    nodes: I64


def racing_accesses(order: Order, conflicts: Conflicts, *, every_pair: bool = True) -> RacingAccesses:
    """All pairs of conflicting accesses that `order` leaves unordered, or only the first one found.

    A first pass finds the accesses that race with an earlier one; where there are any, a second one finds what with. Time
    grows with steps, engines, conflicting footprints and the number of pairs, not with the square of the steps.
    """
    lines = order.timelines
    accesses = lines.program.accesses
    starts = np.concatenate([[0], np.cumsum(np.bincount(accesses.instruction, minlength=len(lines.program)))])
    writes = accesses.flags & np.uint8(AccessFlag.WRITE)
    suspect, watched = _suspects(order, conflicts, starts, writes, first_only=not every_pair)
    if not watched.any():
        return RacingAccesses(np.zeros((0, 4), dtype=np.int64), 0)
    chains = _chains(order, watched)
    run = kernel(kernels.scan, len(lines))
    room = 1 if not every_pair else SMALLEST_LIST
    while True:
        found = np.empty((room, 4), dtype=np.int64)
        count = run(
            order.sequence, lines.instruction, lines.engine, lines.position, order.row, order.clock, order.done, order.read,
            starts, accesses.footprint, writes, chains.chain, conflicts.meets.starts, conflicts.meets.values,
            chains.starts, chains.engine, chains.writes, chains.asynchronous, chains.alive, chains.nodes, suspect,
            every_pair, found,
        )  # fmt: skip
        if count <= room or room >= LARGEST_LIST:
            return RacingAccesses(_arranged(found[: min(count, room)]), count)
        room = min(count, LARGEST_LIST)


def _suspects(order: Order, conflicts: Conflicts, starts: I64, writes: U8, *, first_only: bool) -> tuple[U8, U8]:
    """Whether to look at each access of each step, and at each footprint; at everything in a small program."""
    lines = order.timelines
    sizes = np.diff(starts)[lines.instruction]
    total = int(sizes.sum())
    footprints = len(lines.program.footprints)
    if len(lines) < SUSPECTS_FROM:
        return np.ones(total, dtype=np.uint8), np.ones(footprints, dtype=np.uint8)
    suspect, watched = np.zeros(total, dtype=np.uint8), np.zeros(footprints, dtype=np.uint8)
    kernel(frontier.suspects, len(lines))(
        order.sequence, lines.instruction, lines.engine, lines.position, order.row, order.clock, order.done, order.read,
        starts, lines.program.accesses.footprint, writes, conflicts.meets.starts, conflicts.meets.values,
        int(sizes[lines.asynchronous != 0].sum()), MOST_LOOKS, first_only, suspect, watched,
    )  # fmt: skip
    return suspect, watched


def _arranged(rows: I64) -> I64:
    return rows[np.lexsort((rows[:, 1], rows[:, 3], rows[:, 0], rows[:, 2]))]


def _chains(order: Order, watched: U8) -> _Chains:
    program = order.timelines.program
    accesses, instructions = program.accesses, program.instructions
    kept = np.flatnonzero(watched[accesses.footprint])
    owner = accesses.instruction[kept]
    writes = (accesses.flags[kept] & np.uint8(AccessFlag.WRITE)).astype(np.int64)
    asynchronous = (instructions.flags[owner] & 1).astype(np.int64)
    engines = len(program.engines)
    key = ((accesses.footprint[kept].astype(np.int64) * engines + instructions.engine[owner]) * 2 + writes) * 2
    keys, number = np.unique(key + asynchronous, return_inverse=True)
    chain = np.full(len(accesses), -1, dtype=np.int32)
    chain[kept] = number
    off = (keys % 2).astype(np.uint8)
    footprint = keys // (4 * engines) if engines else keys
    starts = np.searchsorted(footprint, np.arange(len(program.footprints) + 1)).astype(np.int64)
    per_instruction = np.bincount(owner, minlength=len(program))
    off_line = (instructions.flags & 1) != 0
    steps = order.timelines.instruction
    nodes = int(per_instruction[steps].sum())
    off_nodes = int((per_instruction * off_line)[steps].sum())
    alive = np.where(off == 1, np.cumsum(off, dtype=np.int64) - 1, -1).astype(np.int32)
    return _Chains(
        chain=chain,
        starts=starts,
        engine=(keys // 4 % max(engines, 1)).astype(np.int32),
        writes=(keys // 2 % 2).astype(np.uint8),
        asynchronous=off,
        alive=alive,
        nodes=np.array([nodes, off_nodes, int(off.sum())], dtype=np.int64),
    )
