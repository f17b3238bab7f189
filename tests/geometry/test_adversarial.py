"""Questions some method would take minutes for end within a second or so, exact or unknown."""

from __future__ import annotations

import random
import time

import numpy as np
import pytest

from racefree.access import Dim, Pattern
from racefree.geometry import Witness, element_start, overlap_witness, overlaps, self_overlap_witness

SECONDS = 30.0
"""One second on an idle machine; the rest is for one that is not."""


def timed(a: Pattern, b: Pattern) -> bool | None:
    started = time.perf_counter()
    answer = overlaps(a, b)
    assert time.perf_counter() - started < SECONDS
    return answer


def test_the_worst_case_numpy_documents() -> None:
    a = Pattern(0, 1, (Dim(36674, 1049), Dim(61119, 1049), Dim(85569, 1049)))
    b = Pattern(64023025, 1, (Dim(12223, 1049), Dim(12224, 1049), Dim(1, 1)))
    assert timed(a, b) is False


@pytest.mark.parametrize("seed", range(6))
def test_coprime_strides_with_a_planted_solution(seed: int) -> None:
    rng = random.Random(seed)
    steps = rng.sample([10007, 20011, 30011, 40009, 50021, 60013, 70001, 80021], 8)
    dims_a, dims_b = (tuple(Dim(step, 40) for step in half) for half in (steps[:4], steps[4:]))
    at_a, at_b = ([rng.randrange(40) for _ in range(4)] for _ in range(2))
    meet = sum(k * d.step_bytes for k, d in zip(at_a, dims_a, strict=True))
    base = meet - sum(k * d.step_bytes for k, d in zip(at_b, dims_b, strict=True))
    assert timed(Pattern(0, 1, dims_a), Pattern(base, 1, dims_b)) is True


def starts(pattern: Pattern) -> np.ndarray:
    found = np.array([pattern.base_bytes])
    for dim in pattern.dims:
        found = (found[:, None] + dim.step_bytes * np.arange(dim.count)).ravel()
    return np.sort(found)


def meet_by_listing(a: Pattern, b: Pattern) -> bool:
    """Whether elements of one size come closer than that size, by listing all of them."""
    mine, theirs = starts(a), starts(b)
    at = np.searchsorted(theirs, mine - a.elem_bytes, "right")
    near = at < len(theirs)
    return bool((theirs[at[near]] < mine[near] + a.elem_bytes).any())


def long_strides(rng: random.Random, dims: int) -> Pattern:
    moves = tuple(Dim(rng.randrange(1 << 23, 1 << 26), rng.randrange(2, 5)) for _ in range(dims))
    return Pattern(rng.randrange(1 << 28), 4, moves)


@pytest.mark.parametrize("seed", range(8))
def test_twelve_dims_with_long_strides(seed: int) -> None:
    rng = random.Random(seed)
    a, b = long_strides(rng, 6), long_strides(rng, 6)
    assert timed(a, b) is meet_by_listing(a, b)


@pytest.mark.parametrize("seed", range(4))
def test_twelve_dims_a_side_with_long_strides(seed: int) -> None:
    rng = random.Random(seed)
    a, b = long_strides(rng, 12), long_strides(rng, 12)
    at_a, at_b = ([rng.randrange(dim.count) for dim in p.dims] for p in (a, b))
    b = Pattern(b.base_bytes + element_start(a, at_a) - element_start(b, at_b) + 3, 4, b.dims)
    assert timed(a, b) is not False
    witness = overlap_witness(a, b)
    if isinstance(witness, Witness):
        assert 0 <= witness.byte - element_start(a, witness.a) < 4
        assert 0 <= witness.byte - element_start(b, witness.b) < 4


def test_strides_of_120_bits() -> None:
    rng = random.Random(9)
    dims = tuple(Dim(rng.randrange(1 << 119, 1 << 120), 3) for _ in range(12))
    a, b = Pattern(0, 1, dims[:6]), Pattern(1, 1, dims[6:])
    assert timed(a, b) is False
    at_a, at_b = (0, 1, 2, 0, 1, 2), (2, 1, 0, 2, 1, 1)
    moved = element_start(a, at_a) - sum(k * d.step_bytes for k, d in zip(at_b, b.dims, strict=True))
    assert timed(a, Pattern(moved, 1, b.dims)) is True


def test_self_overlap_of_coprime_strides_ends() -> None:
    started = time.perf_counter()
    dims = tuple(Dim(step, 1049) for step in (36674, 61119, 85569, 12223, 12224))
    assert self_overlap_witness(Pattern(0, 1, dims)) is not None
    assert time.perf_counter() - started < SECONDS


def test_the_witness_of_a_hard_question_is_checked() -> None:
    a = Pattern(0, 1, (Dim(36674, 1049), Dim(61119, 1049), Dim(85569, 1049)))
    b = Pattern(64023026, 1, (Dim(12223, 1049), Dim(12224, 1049)))
    assert (overlap_witness(a, b) is None) is (overlaps(a, b) is False)
