"""Sorts racing accesses into pairs of instructions: certain, merely possible, excused, separated by queue order only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.engines.footprints import Conflicts
from racefree.engines.order import Order
from racefree.engines.program import I32, I64, AccessFlag, InstructionFlag
from racefree.engines.scan import RacingAccesses

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
    for step_column, access_column in ((0, 1), (2, 3)):
        access = rows[:, access_column]
        reads = (accesses.flags[access] & np.uint8(AccessFlag.WRITE)) == 0
        for at in np.flatnonzero(reads & may[accesses.instruction[access]]).tolist():
            step, row = int(rows[at, step_column]), int(access[at])
            buffer = program.buffers[int(accesses.buffer[row])]
            if not buffer.initialised and not _written_before(order, step, row, conflicts):
                excused[at] = True
    return excused


def _written_before(order: Order, step: int, access: int, conflicts: Conflicts) -> bool:
    lines = order.timelines
    accesses = lines.program.accesses
    footprint = int(accesses.footprint[access])
    met = conflicts.meets.values[conflicts.meets.starts[footprint] : conflicts.meets.starts[footprint + 1]]
    writes = (accesses.flags & np.uint8(AccessFlag.WRITE)) != 0
    writers = np.unique(accesses.instruction[writes & np.isin(accesses.footprint, met)])
    return any(order.completed_before(int(w), step) for w in np.flatnonzero(np.isin(lines.instruction, writers)))


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
    taken = {tuple(key) for key in _keys(order, others).tolist()}
    kept = np.array([tuple(key) not in taken for key in _keys(order, rows).tolist()], dtype=bool)
    left: I64 = rows[kept]
    return left


def _ordered_by_queues(order: Order, in_order: Order, rows: I64) -> Bools:
    """Which rows queues separate, when each transfers one at a time."""
    lines = order.timelines
    queue: I32 = lines.program.instructions.queue[lines.instruction]
    first, second = rows[:, 0], rows[:, 2]
    same = (queue[first] >= 0) & (queue[first] == queue[second]) & (lines.engine[first] == lines.engine[second])
    writes = (lines.program.accesses.flags & np.uint8(AccessFlag.WRITE)) != 0
    separated: Bools = same.copy()
    for at in np.flatnonzero(~same).tolist():
        a, x, b, y = (int(value) for value in rows[at])
        forwards = in_order.completed_before(a, b) if writes[x] else in_order.read_before(a, b)
        backwards = in_order.completed_before(b, a) if writes[y] else in_order.read_before(b, a)
        separated[at] = forwards or backwards
    return separated
