"""Sorts racing accesses into pairs of instructions: certain, merely possible, excused, separated by queue order only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.engines.footprints import Conflicts
from racefree.engines.order import Order
from racefree.engines.program import I32, I64, AccessFlag, InstructionFlag
from racefree.engines.scan import RacingAccesses
from racefree.engines.timeline import NEVER

Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """One row a racing pair of instructions: (first step, first access, second step, second access)."""

    certain: I64
    possible: I64
    excused: I64
    queue_order_only: Bools
    """For each row of `certain`."""


def classify(order: Order, racing: RacingAccesses, conflicts: Conflicts, in_order: Order | None) -> Pairs:
    """`in_order` is the order with queues that complete in order, or None when no queue matters."""
    rows = racing.rows
    inexact = _inexact(order, rows, conflicts)
    excused = _excused(order, rows, conflicts)
    certain = one_per_pair(order, rows[~inexact & ~excused])
    possible = _without(order, one_per_pair(order, rows[inexact & ~excused]), certain)
    spared = _without(order, one_per_pair(order, rows[excused]), np.concatenate([certain, possible]))
    by_queue = np.zeros(len(certain), dtype=bool) if in_order is None else _ordered_by_queues(order, in_order, certain)
    return Pairs(certain, possible, spared, by_queue)


def _inexact(order: Order, rows: I64, conflicts: Conflicts) -> Bools:
    """Rows whose accesses may not share a byte after all."""
    accesses = order.timelines.program.accesses
    flags = accesses.flags[rows[:, 1]] | accesses.flags[rows[:, 3]]
    inexact: Bools = (flags & np.uint8(AccessFlag.INEXACT)) != 0
    if conflicts.undecided.any():
        source = np.repeat(np.arange(len(conflicts.meets.starts) - 1), np.diff(conflicts.meets.starts))
        undecided = conflicts.undecided != 0
        pairs = set(zip(source[undecided].tolist(), conflicts.meets.values[undecided].tolist(), strict=True))
        one, other = accesses.footprint[rows[:, 1]].tolist(), accesses.footprint[rows[:, 3]].tolist()
        inexact |= np.array([pair in pairs for pair in zip(one, other, strict=True)], dtype=bool)
    return inexact


def _excused(order: Order, rows: I64, conflicts: Conflicts) -> Bools:
    """Reads that may see anything, of memory that nothing has written by then."""
    program = order.timelines.program
    accesses = program.accesses
    excused = np.zeros(len(rows), dtype=bool)
    may = (program.instructions.flags & np.uint8(InstructionFlag.READS_UNINITIALISED)) != 0
    holds_data = np.array([buffer.initialised for buffer in program.buffers], dtype=bool)
    first_writes: _FirstWrites | None = None
    for step_column, access_column in ((0, 1), (2, 3)):
        access = rows[:, access_column]
        reads = (accesses.flags[access] & np.uint8(AccessFlag.WRITE)) == 0
        asked = np.flatnonzero(reads & may[accesses.instruction[access]] & ~holds_data[accesses.buffer[access]])
        if not len(asked):
            continue
        first_writes = first_writes or _FirstWrites(order, conflicts)
        pairs, which = np.unique(rows[asked][:, [step_column, access_column]], axis=0, return_inverse=True)
        clean = [not first_writes.precede(step, row) for step, row in pairs.tolist()]
        excused[asked] |= np.array(clean, dtype=bool)[which.reshape(-1)]
    return excused


class _FirstWrites:
    """When each footprint is first written: on each engine's timeline, and as each engine learns of asynchronous writes."""

    def __init__(self, order: Order, conflicts: Conflicts) -> None:
        self.order, self.conflicts = order, conflicts
        lines = order.timelines
        accesses = lines.program.accesses
        shape = (len(lines.program.footprints), len(lines.program.engines))
        self.position = np.full(shape, NEVER, dtype=np.int32)
        self.known = np.full(shape, NEVER, dtype=np.int32)
        starts = np.searchsorted(lines.program.accesses.instruction, np.arange(len(lines.program) + 1))
        sizes = np.diff(starts)[lines.instruction]
        step = np.repeat(np.arange(len(lines)), sizes)
        row = np.arange(len(step)) - np.repeat(np.cumsum(sizes) - sizes, sizes) + starts[lines.instruction[step]]
        writes = (accesses.flags[row] & np.uint8(AccessFlag.WRITE)) != 0
        step, footprint = step[writes], accesses.footprint[row[writes]]
        here = order.row[step] < 0
        np.minimum.at(self.position, (footprint[here], lines.engine[step[here]]), lines.position[step[here]])
        np.minimum.at(self.known, footprint[~here], order.done[order.row[step[~here]]])

    def precede(self, step: int, access: int) -> bool:
        """Whether some write that meets the access must be complete when the step starts."""
        lines = self.order.timelines
        footprint = int(lines.program.accesses.footprint[access])
        meets = self.conflicts.meets
        met = meets.values[meets.starts[footprint] : meets.starts[footprint + 1]]
        engine, position = int(lines.engine[step]), int(lines.position[step])
        reached = self.order.clock[step].astype(np.int64)
        reached[engine] = 3 * position
        on_timelines = reached >= 3 * self.position[met].astype(np.int64) + 3
        return bool(on_timelines.any() or (self.known[met, engine] <= position).any())


def _keys(order: Order, rows: I64) -> I64:
    """Instruction, instruction and loop distance of each row."""
    lines = order.timelines
    distance = lines.distance(rows[:, 0], rows[:, 2])
    return np.stack([lines.instruction[rows[:, 0]], lines.instruction[rows[:, 2]], distance], axis=1).astype(np.int64)


def one_per_pair(order: Order, rows: I64) -> I64:
    """The first row of each pair of instructions, the step that comes first in the unrolled document first."""
    swapped = rows[:, 0] > rows[:, 2]
    rows = np.where(swapped[:, None], rows[:, [2, 3, 0, 1]], rows)
    keys = _keys(order, rows)
    arranged = np.lexsort((rows[:, 3], rows[:, 1], rows[:, 2], rows[:, 0], keys[:, 2], keys[:, 1], keys[:, 0]))
    keys = keys[arranged]
    fresh = np.ones(len(keys), dtype=bool)
    fresh[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    return rows[arranged[fresh]]


def _without(order: Order, rows: I64, others: I64) -> I64:
    """The rows whose pair of instructions is not among the others."""
    mine, theirs = _keys(order, rows), _keys(order, others)
    size = len(order.timelines.program)
    farthest = max(int(mine[:, 2].max(initial=0)), int(theirs[:, 2].max(initial=0))) + 1
    weights = np.array([size * farthest, farthest, 1], dtype=np.int64)
    left: I64 = rows[~np.isin(mine @ weights, theirs @ weights)]
    return left


def _ordered_by_queues(order: Order, in_order: Order, rows: I64) -> Bools:
    """Which rows queues separate, when each transfers one at a time."""
    lines = order.timelines
    queue: I32 = lines.program.instructions.queue[lines.instruction]
    first, second = rows[:, 0], rows[:, 2]
    same = (queue[first] >= 0) & (queue[first] == queue[second]) & (lines.engine[first] == lines.engine[second])
    writes = (lines.program.accesses.flags & np.uint8(AccessFlag.WRITE)) != 0
    forwards = in_order.before_each(first, second, writes[rows[:, 1]])
    separated: Bools = same | forwards | in_order.before_each(second, first, writes[rows[:, 3]])
    return separated
