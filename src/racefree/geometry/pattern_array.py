"""Many strided patterns as arrays: the columns the batch, the sweeps and the run lists read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.access import Dim, Pattern

Int64s = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SAFE_MAGNITUDE = float(1 << 59)
"""Patterns whose every address is below this can be added and subtracted pairwise and stay below 2^62."""


@dataclass(frozen=True, slots=True, eq=False)
class PatternArray:
    """N patterns with D dims each: bytes base + sum(steps * k) + [0, elem), 0 <= k < counts.

    `base` and `elem` have shape [N], `steps` (bytes, any sign) and `counts` shape [N, D]; pad a missing dim with count 1; a
    count of 0, or an `elem` of 0, makes a pattern empty. Raises ValueError for other shapes or negative counts and sizes.
    """

    base: Int64s
    elem: Int64s
    steps: Int64s
    counts: Int64s

    def __post_init__(self) -> None:
        for name in ("base", "elem", "steps", "counts"):
            column = np.ascontiguousarray(getattr(self, name), dtype=np.int64)
            object.__setattr__(self, name, column)
        n = len(self.base)
        if self.base.ndim != 1 or self.elem.shape != (n,) or self.steps.ndim != 2 or len(self.steps) != n:
            raise ValueError(f"shapes {self.base.shape}, {self.elem.shape}, {self.steps.shape} do not belong together")
        if self.counts.shape != self.steps.shape:
            raise ValueError(f"steps have shape {self.steps.shape} and counts {self.counts.shape}")
        if n and (self.elem.min() < 0 or (self.counts.size and self.counts.min() < 0)):
            raise ValueError("a count or an element size is negative")

    def __len__(self) -> int:
        return len(self.base)

    @classmethod
    def of(cls, patterns: Sequence[Pattern]) -> PatternArray:
        """The patterns as arrays. Raises OverflowError when a number does not fit 64 bits."""
        depth = max((len(pattern.dims) for pattern in patterns), default=0)
        steps = np.zeros((len(patterns), depth), dtype=np.int64)
        counts = np.ones((len(patterns), depth), dtype=np.int64)
        for row, pattern in enumerate(patterns):
            for column, dim in enumerate(pattern.dims):
                steps[row, column] = dim.step_bytes
                counts[row, column] = dim.count
        base = np.array([pattern.base_bytes for pattern in patterns], dtype=np.int64)
        elem = np.array([pattern.elem_bytes for pattern in patterns], dtype=np.int64)
        return cls(base, elem, steps, counts)

    def pattern(self, row: int) -> Pattern:
        """One row as a `Pattern` of Python integers, padding included."""
        dims = zip(self.steps[row].tolist(), self.counts[row].tolist(), strict=True)
        return Pattern(int(self.base[row]), int(self.elem[row]), tuple(Dim(step, count) for step, count in dims))

    def take(self, rows: npt.NDArray[np.intp] | Bools) -> PatternArray:
        """The chosen rows, in the order given."""
        return PatternArray(self.base[rows], self.elem[rows], self.steps[rows], self.counts[rows])

    def empty(self) -> Bools:
        """Which patterns touch no byte."""
        touches_none: Bools = (self.elem == 0) | (self.counts == 0).any(axis=1)
        return touches_none

    def safe(self) -> Bools:
        """Which patterns stay so far from the limits of 64 bits that their sums cannot overflow."""
        moves = np.abs(self.steps.astype(np.float64)) * self.counts.astype(np.float64)
        magnitude = np.abs(self.base.astype(np.float64)) + self.elem.astype(np.float64) + moves.sum(axis=1)
        fits: Bools = magnitude < SAFE_MAGNITUDE
        return fits

    def spans(self) -> tuple[Int64s, Int64s]:
        """Half-open byte ranges (starts, ends) of the patterns; (base, base) where empty, meaningless where not `safe`."""
        empty = self.empty()
        with np.errstate(over="ignore"):
            moves = self.steps * (self.counts - 1)
            starts = self.base + np.minimum(moves, 0).sum(axis=1)
            ends = self.base + np.maximum(moves, 0).sum(axis=1) + self.elem
        return np.where(empty, self.base, starts), np.where(empty, self.base, ends)
