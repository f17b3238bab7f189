"""Decides the overlap of many pairs of patterns at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from racefree.geometry.decide import searchable, solvable
from racefree.geometry.equation import Equation
from racefree.geometry.pattern_array import Bools, Int64s, PatternArray

DISJOINT, OVERLAP, UNKNOWN_PAIR = 0, 1, 2

COMPILED_FROM = 30_000
"""Pairs from which loading Numba pays; below, pure Python is done sooner."""

COMPILED_FROM_LOADED = 500
"""The same when something has loaded Numba already."""

SEARCH_BUDGET = 2_000
HARD_LIMIT = 200
"""Different hard equations one call may take to the slow methods; the rest are unknown, so that a call always ends."""

Answers = npt.NDArray[np.int8]


def overlaps_batch(
    a: PatternArray,
    b: PatternArray,
    *,
    pairs: tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]] | None = None,
    hard_limit: int = HARD_LIMIT,
) -> Answers:
    """Per pair 0 (disjoint), 1 (overlap) or 2 (unknown: treat as possible), with the meaning of `overlaps`.

    Row i of `a` meets row i of `b`, or with `pairs` = (rows of a, rows of b) those rows. Rows whose sums could leave 64 bits
    are decided with exact integers. Raises ValueError when the lengths differ or a row does not exist.
    """
    rows = _rows(a, b, pairs)
    n = len(a) if rows is None else len(rows[0])
    if n >= (COMPILED_FROM_LOADED if "numba" in sys.modules else COMPILED_FROM):
        answers = _compiled(a, b, rows)
        slow = np.flatnonzero(answers == UNKNOWN_PAIR)
    else:
        answers = np.zeros(n, dtype=np.int8)
        slow = np.flatnonzero(~_apart(a, b, rows))
    if len(slow):
        rows_a, rows_b = (slow, slow) if rows is None else (rows[0][slow], rows[1][slow])
        _exact(_Side(a, rows_a, sign=1), _Side(b, rows_b, sign=-1), slow, hard_limit, answers)
    return answers


def _apart(a: PatternArray, b: PatternArray, rows: tuple[Int64s, Int64s] | None) -> Bools:
    """Which pairs have an empty side, or byte ranges that do not meet."""
    rows_a, rows_b = (slice(None), slice(None)) if rows is None else rows
    (low_a, high_a), (low_b, high_b) = a.spans(), b.spans()
    by_range = (high_a[rows_a] <= low_b[rows_b]) | (high_b[rows_b] <= low_a[rows_a])
    by_range &= a.safe()[rows_a] & b.safe()[rows_b]
    apart: Bools = by_range | a.empty()[rows_a] | b.empty()[rows_b]
    return apart


def _rows(
    a: PatternArray, b: PatternArray, pairs: tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]] | None
) -> tuple[Int64s, Int64s] | None:
    if pairs is None:
        if len(a) != len(b):
            raise ValueError(f"{len(a)} rows of a are paired with {len(b)} rows of b")
        return None
    rows_a, rows_b = (np.ascontiguousarray(rows, dtype=np.int64) for rows in pairs)
    if rows_a.shape != rows_b.shape or rows_a.ndim != 1:
        raise ValueError(f"rows of shape {rows_a.shape} are paired with rows of shape {rows_b.shape}")
    for rows, patterns in ((rows_a, a), (rows_b, b)):
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(patterns):
            raise ValueError(f"rows {rows.min()} to {rows.max()} are asked of {len(patterns)} patterns")
    return rows_a, rows_b


def _compiled(a: PatternArray, b: PatternArray, rows: tuple[Int64s, Int64s] | None) -> Answers:
    from racefree.geometry.batch_kernel import decide_columns

    columns_a = (a.base, a.elem, a.steps, a.counts)
    columns_b = (b.base, b.elem, b.steps, b.counts)
    return decide_columns(columns_a, columns_b, rows, budget=SEARCH_BUDGET)


def _exact(a: _Side, b: _Side, chosen: npt.NDArray[np.intp], hard_limit: int, answers: Answers) -> None:
    """Decide the chosen pairs one by one; the slow methods only for the first `hard_limit` different hard equations."""
    hard: set[Equation] = set()
    for at, pair in enumerate(chosen.tolist()):
        inner = (1, a.elem[at] + b.elem[at] - 2)
        target = b.base[at] - a.base[at] + b.elem[at] - 1
        equation = Equation((*a.terms(at), *b.terms(at), inner), target)
        answer = searchable(equation)
        if answer is None and (equation in hard or len(hard) < hard_limit):
            hard.add(equation)
            answer = solvable(equation)
        answers[pair] = UNKNOWN_PAIR if answer is None else OVERLAP if answer else DISJOINT


class _Side:
    """One side of the chosen pairs as Python integers, which cannot overflow."""

    def __init__(self, patterns: PatternArray, rows: npt.NDArray[np.integer], *, sign: int) -> None:
        self.base: list[int] = patterns.base[rows].tolist()
        self.elem: list[int] = patterns.elem[rows].tolist()
        self._steps: list[list[int]] = patterns.steps[rows].tolist()
        self._counts: list[list[int]] = patterns.counts[rows].tolist()
        self._sign = sign

    def terms(self, at: int) -> Iterator[tuple[int, int]]:
        for step, count in zip(self._steps[at], self._counts[at], strict=True):
            yield self._sign * step, count - 1
