"""Decides a reduced equation by listing the sums of each half of its terms and looking for two that add up to the target."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt

from racefree.geometry.equation import UNKNOWN, Unknown
from racefree.geometry.reduction import Term

SUM_LIMIT = 1 << 21
INT64_SAFE = 1 << 62


def halves(terms: tuple[Term, ...], target: int) -> list[int] | Unknown | None:
    """Values of the terms that sum to `target`, None when there are none, UNKNOWN when a half has too many sums.

    Horowitz and Sahni's method for subset sums, with digits in place of bits.
    """
    if sum(term.step * term.bound for term in terms) >= INT64_SAFE:
        return UNKNOWN
    left, right = _split(terms)
    if max(_size(left), _size(right)) > SUM_LIMIT:
        return UNKNOWN
    sums_left = _sums(left)
    sums_right = _sums(right)
    order = np.argsort(sums_right, kind="stable")
    ordered = sums_right[order]
    wanted = target - sums_left
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    hits = np.flatnonzero(ordered[at] == wanted)
    if not len(hits):
        return None
    digits = {
        **_digits(left, int(hits[0])),
        **_digits(right, int(order[at[hits[0]]])),
    }
    return [digits[term.variable] for term in terms]


def _split(terms: tuple[Term, ...]) -> tuple[list[Term], list[Term]]:
    """Two parts with about as many sums each, largest ranges placed first."""
    parts: tuple[list[Term], list[Term]] = ([], [])
    for term in sorted(terms, key=lambda term: (-term.bound, term.variable)):
        min(parts, key=_size).append(term)
    return parts


def _size(part: list[Term]) -> int:
    return prod(term.bound + 1 for term in part)


def _sums(part: list[Term]) -> npt.NDArray[np.int64]:
    sums = np.zeros(1, dtype=np.int64)
    for term in part:
        multiples = term.step * np.arange(term.bound + 1, dtype=np.int64)
        sums = (sums[:, None] + multiples[None, :]).ravel()
    return sums


def _digits(part: list[Term], index: int) -> dict[int, int]:
    digits = {}
    for term in reversed(part):
        index, digits[term.variable] = divmod(index, term.bound + 1)
    return digits
