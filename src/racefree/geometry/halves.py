"""Decides a reduced equation by listing the sums of each half of its terms and looking for two that add up to the target."""

from __future__ import annotations

from math import prod

import numpy as np
import numpy.typing as npt

from racefree.geometry.equation import UNKNOWN, Unknown
from racefree.geometry.reduction import Term

SUM_LIMIT = 1 << 21
_WORD = 1 << 64


def halves(terms: tuple[Term, ...], target: int) -> list[int] | Unknown | None:
    """Values of the terms that sum to `target`, None when there are none, UNKNOWN when a half has too many sums.

    Horowitz and Sahni's method for subset sums, with digits in place of bits. Sums are kept modulo 2^64: two halves that do
    not match there do not match, and a match is checked with exact integers.
    """
    left, right = _split(terms)
    if max(_size(left), _size(right)) > SUM_LIMIT:
        return UNKNOWN
    sums_left, sums_right = _sums(left), _sums(right)
    wanted = np.sort(np.uint64(target % _WORD) - sums_left)
    ordered = np.sort(sums_right)
    at = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    hits = wanted[ordered[at] == wanted]
    if not len(hits):
        return None
    hit = int(hits[0])
    digits = {
        **_digits(left, int(np.argmax(sums_left == np.uint64((target - hit) % _WORD)))),
        **_digits(right, int(np.argmax(sums_right == np.uint64(hit)))),
    }
    values = [digits[term.variable] for term in terms]
    exact = sum(term.step * value for term, value in zip(terms, values, strict=True)) == target
    # A match by chance hides whether another one is exact.
    return values if exact else UNKNOWN


def _split(terms: tuple[Term, ...]) -> tuple[list[Term], list[Term]]:
    """Two parts with about as many sums each, largest ranges placed first."""
    parts: tuple[list[Term], list[Term]] = ([], [])
    for term in sorted(terms, key=lambda term: (-term.bound, term.variable)):
        min(parts, key=_size).append(term)
    return parts


def _size(part: list[Term]) -> int:
    return prod(term.bound + 1 for term in part)


def _sums(part: list[Term]) -> npt.NDArray[np.uint64]:
    sums = np.zeros(1, dtype=np.uint64)
    for term in part:
        multiples = np.uint64(term.step % _WORD) * np.arange(term.bound + 1, dtype=np.uint64)
        sums = (sums[:, None] + multiples[None, :]).ravel()
    return sums


def _digits(part: list[Term], index: int) -> dict[int, int]:
    digits = {}
    for term in reversed(part):
        index, digits[term.variable] = divmod(index, term.bound + 1)
    return digits
