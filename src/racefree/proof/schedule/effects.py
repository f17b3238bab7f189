"""What an atomic leaves in its cell, and the few operations on clocks that atomics need."""

from __future__ import annotations

import numpy as np

from racefree.access import Kind
from racefree.graph.program import Access
from racefree.proof.replay.atomics import left_behind
from racefree.proof.replay.lanes import Lanes, unknown
from racefree.proof.schedule.values import Clock


def effect(access: Access, value: int | None, operands: tuple[int | None, ...]) -> tuple[int | None, bool]:
    """The value an atomic leaves where it found `value`, and whether it counts as a write that changed it."""
    old = _scalar(value)
    new = left_behind(access, old, [_scalar(o) for o in operands]).scalar()
    if value is None or new is None:
        failed = access.kind is Kind.CAS and value is not None and operands[0] is not None and value != operands[0]
        return (value, False) if failed else (new, True)
    return new, new != value


def _scalar(value: int | None) -> Lanes:
    if value is None:
        return unknown(())
    return Lanes(np.asarray(value, dtype=np.uint64), np.asarray(True))


def with_count(clock: Clock, member: int, count: int) -> Clock:
    return (*clock[:member], max(clock[member], count), *clock[member + 1 :])


def at_least(seen: Clock, cell: int, position: int) -> Clock:
    if len(seen) <= cell:
        seen = (*seen, *(0,) * (cell + 1 - len(seen)))
    return (*seen[:cell], max(seen[cell], position), *seen[cell + 1 :])


def later(a: Clock, b: Clock) -> Clock:
    size = max(len(a), len(b))
    return tuple(map(max, a + (0,) * (size - len(a)), b + (0,) * (size - len(b))))
