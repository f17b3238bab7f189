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
    rows_a, rows_b = _rows(a, b, pairs)
    if len(rows_a) >= (COMPILED_FROM_LOADED if "numba" in sys.modules else COMPILED_FROM):
        answers = _compiled(a, b, rows_a, rows_b)
        slow = np.flatnonzero(answers == UNKNOWN_PAIR)
    else:
        answers = np.zeros(len(rows_a), dtype=np.int8)
        slow = np.flatnonzero(~_apart(a, b, rows_a, rows_b))
    if len(slow):
        _exact(a, b, rows_a, rows_b, slow, hard_limit, answers)
    return answers


def _apart(a: PatternArray, b: PatternArray, rows_a: Int64s, rows_b: Int64s) -> Bools:
    """Which pairs have an empty side, or byte ranges that do not meet."""
    (low_a, high_a), (low_b, high_b) = a.spans(), b.spans()
    by_range = (high_a[rows_a] <= low_b[rows_b]) | (high_b[rows_b] <= low_a[rows_a])
    by_range &= a.safe()[rows_a] & b.safe()[rows_b]
    return by_range | a.empty()[rows_a] | b.empty()[rows_b]


def _rows(
    a: PatternArray, b: PatternArray, pairs: tuple[npt.NDArray[np.integer], npt.NDArray[np.integer]] | None
) -> tuple[Int64s, Int64s]:
    if pairs is not None:
        rows_a, rows_b = (np.asarray(rows, dtype=np.int64) for rows in pairs)
    else:
        rows_a, rows_b = np.arange(len(a)), np.arange(len(b))
    for rows, patterns in ((rows_a, a), (rows_b, b)):
        if len(rows) and not 0 <= rows.min() <= rows.max() < len(patterns):
            raise ValueError(f"rows {rows.min()} to {rows.max()} are asked of {len(patterns)} patterns")
    if len(rows_a) != len(rows_b):
        raise ValueError(f"{len(rows_a)} rows of a are paired with {len(rows_b)} rows of b")
    return rows_a, rows_b


def _compiled(a: PatternArray, b: PatternArray, rows_a: Int64s, rows_b: Int64s) -> Answers:
    from racefree.geometry.batch_kernel import decide_columns

    trusted = a.all_safe() and b.all_safe()
    columns_a = (a.base, a.elem, a.steps, a.counts)
    columns_b = (b.base, b.elem, b.steps, b.counts)
    return decide_columns(columns_a, columns_b, (rows_a, rows_b), trusted=trusted, budget=SEARCH_BUDGET)


def _exact(
    a: PatternArray, b: PatternArray, rows_a: Int64s, rows_b: Int64s, chosen: Int64s, hard_limit: int, answers: Answers
) -> None:
    """Decide the chosen pairs one by one; the slow methods only for the first `hard_limit` different hard equations."""
    terms_a = _Sides(a, rows_a[chosen], sign=1)
    terms_b = _Sides(b, rows_b[chosen], sign=-1)
    hard: set[Equation] = set()
    for at, pair in enumerate(chosen.tolist()):
        elem_b = terms_b.elem[at]
        inner = (1, terms_a.elem[at] + elem_b - 2)
        target = terms_b.base[at] - terms_a.base[at] + elem_b - 1
        equation = Equation((*terms_a.terms(at), *terms_b.terms(at), inner), target)
        answer = searchable(equation)
        if answer is None and (equation in hard or len(hard) < hard_limit):
            hard.add(equation)
            answer = solvable(equation)
        answers[pair] = UNKNOWN_PAIR if answer is None else OVERLAP if answer else DISJOINT


class _Sides:
    """One side of each chosen pair as Python integers, which cannot overflow."""

    def __init__(self, patterns: PatternArray, rows: Int64s, *, sign: int) -> None:
        self.base: list[int] = patterns.base[rows].tolist()
        self.elem: list[int] = patterns.elem[rows].tolist()
        self._steps: list[list[int]] = patterns.steps[rows].tolist()
        self._counts: list[list[int]] = patterns.counts[rows].tolist()
        self._sign = sign

    def terms(self, at: int) -> Iterator[tuple[int, int]]:
        for step, count in zip(self._steps[at], self._counts[at], strict=True):
            yield self._sign * step, count - 1
