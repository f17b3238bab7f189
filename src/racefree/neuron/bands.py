"""Between which core barriers an instruction runs.

A barrier on all engines is one event: whatever completed before one of its members starts is before it, whatever starts
after one of its members completed is after it. A barrier on a single engine counts for that engine alone. For a step x and
such a line of barriers, `after` counts the barriers before x, and `until` is the index of the first barrier that x is
before, or the number of barriers when there is none. So a step before every barrier has `after` 0, which no barrier
equals: sentinels on both sides keep it apart from barrier 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.engines.order import Order

I64 = npt.NDArray[np.int64]

ALL = "ALL"

_COMPLETED = 3
"""Thirds of a step an engine must be through for that step to have completed."""


@dataclass(frozen=True, slots=True, eq=False)
class Bands:
    """Per instruction (over all its executions) and line of barriers (`ALL`, or an engine): `after` and `until`."""

    lines: tuple[str, ...]
    after: I64
    until: I64


def bands(order: Order, opcode: str = "CoreBarrier") -> Bands:
    """The bands of every instruction under one order. O(n * engines * log(barriers))."""
    steps = order.timelines
    program = steps.program
    wanted = program.opcodes.index(opcode) if opcode in program.opcodes else -1
    barrier = program.instructions.opcode[steps.instruction] == wanted
    meeting = barrier & (steps.group >= 0)
    names: list[str] = []
    columns: list[tuple[I64, I64]] = []
    if meeting.any():
        parts = [_line(order, meeting, engine) for engine in sorted({int(one) for one in steps.engine[meeting]})]
        names.append(ALL)
        columns.append((np.max([a for a, _ in parts], axis=0), np.min([u for _, u in parts], axis=0)))
    alone = barrier & (steps.group < 0)
    for engine in sorted({int(one) for one in steps.engine[alone]}):
        names.append(program.engines[engine])
        columns.append(_line(order, alone, engine))
    count = len(program)
    after = np.full((count, len(names)), np.iinfo(np.int64).max)
    until = np.full((count, len(names)), -1, dtype=np.int64)
    for column, (first, last) in enumerate(columns):
        np.minimum.at(after[:, column], steps.instruction, first)
        np.maximum.at(until[:, column], steps.instruction, last)
    return Bands(tuple(names), after, until)


def _line(order: Order, barriers: npt.NDArray[np.bool_], engine: int) -> tuple[I64, I64]:
    """`after` and `until` of every step for the barriers of one engine."""
    steps = order.timelines
    chosen = np.flatnonzero(barriers & (steps.engine == engine))
    positions = steps.position[chosen].astype(np.int64)
    after = np.searchsorted(positions * _COMPLETED + _COMPLETED, order.clock[:, engine], side="right").astype(np.int64)
    until = np.zeros(len(steps), dtype=np.int64)
    for other in range(len(steps.program.engines)):
        here = np.flatnonzero((steps.engine == other) & (order.row < 0))
        needed = steps.position[here].astype(np.int64) * _COMPLETED + _COMPLETED
        reached = np.maximum.accumulate(order.clock[chosen, other].astype(np.int64))
        until[here] = np.searchsorted(reached, needed, side="left")
    off = np.flatnonzero(order.row >= 0)
    if len(off):
        until[off] = np.searchsorted(positions, order.done[order.row[off], engine].astype(np.int64), side="left")
    return after, until
