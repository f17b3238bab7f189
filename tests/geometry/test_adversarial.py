"""Questions some method would take minutes for end within a second or so, exact or unknown."""

from __future__ import annotations

import random
import time

import pytest

from racefree.access import Dim, Pattern
from racefree.geometry import overlap_witness, overlaps, self_overlap_witness

SECONDS = 5.0
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


@pytest.mark.parametrize("per_side", [6, 12])
@pytest.mark.parametrize("seed", range(3))
def test_many_dims_with_long_strides(per_side: int, seed: int) -> None:
    rng = random.Random(seed)

    def side() -> Pattern:
        dims = tuple(Dim(rng.randrange(1 << 23, 1 << 26), rng.randrange(2, 5)) for _ in range(per_side))
        return Pattern(rng.randrange(1 << 28), 4, dims)

    a, b = side(), side()
    assert timed(a, b) in (True, False, None)
    assert timed(a, a) is True


def test_strides_of_120_bits() -> None:
    rng = random.Random(9)
    dims = tuple(Dim(rng.randrange(1 << 119, 1 << 120), 3) for _ in range(12))
    assert timed(Pattern(0, 1, dims[:6]), Pattern(1, 1, dims[6:])) in (False, None)


def test_self_overlap_of_coprime_strides_ends() -> None:
    started = time.perf_counter()
    dims = tuple(Dim(step, 1049) for step in (36674, 61119, 85569, 12223, 12224))
    assert self_overlap_witness(Pattern(0, 1, dims)) is not None
    assert time.perf_counter() - started < SECONDS


def test_the_witness_of_a_hard_question_is_checked() -> None:
    a = Pattern(0, 1, (Dim(36674, 1049), Dim(61119, 1049), Dim(85569, 1049)))
    b = Pattern(64023026, 1, (Dim(12223, 1049), Dim(12224, 1049)))
    assert (overlap_witness(a, b) is None) is (overlaps(a, b) is False)
