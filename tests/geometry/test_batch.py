"""The batch says what one pair at a time says."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_enumeration import bytes_of

from racefree.access import Dim, Pattern
from racefree.geometry import DISJOINT, OVERLAP, UNKNOWN_PAIR, PatternArray, batch, overlaps, overlaps_batch

STEPS = np.array([-640, -33, -20, -8, -7, -3, -1, 0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 33, 64, 96, 100, 512])


def random_array(rng: np.random.Generator, n: int, dims: int) -> PatternArray:
    counts = rng.integers(1, 9, (n, dims))
    counts[rng.random((n, dims)) < 0.2] = 1
    counts[rng.random((n, dims)) < 0.01] = 0
    return PatternArray(
        rng.integers(-300, 300, n), rng.choice([1, 2, 3, 4, 8, 16], n), rng.choice(STEPS, (n, dims)), counts
    )


@pytest.fixture(params=["compiled", "python"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways the batch may take, whatever the number of pairs."""
    threshold = 0 if request.param == "compiled" else 1 << 60
    monkeypatch.setattr(batch, "COMPILED_FROM", threshold)
    monkeypatch.setattr(batch, "COMPILED_FROM_LOADED", threshold)
    return str(request.param)


def test_a_hundred_thousand_pairs_agree_with_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    monkeypatch.setattr(batch, "COMPILED_FROM", 0)
    monkeypatch.setattr(batch, "COMPILED_FROM_LOADED", 0)
    for dims, n in ((1, 20_000), (2, 30_000), (3, 30_000), (4, 20_000)):
        a, b = random_array(rng, n, dims), random_array(rng, n, dims)
        answers = overlaps_batch(a, b)
        expected = [overlaps(a.pattern(row), b.pattern(row)) for row in range(n)]
        assert answers.tolist() == [int(bool(answer)) for answer in expected]
        assert set(answers.tolist()) == {DISJOINT, OVERLAP}


def test_both_paths_agree_with_enumeration(path: str) -> None:
    rng = np.random.default_rng(4)
    a, b = random_array(rng, 2_000, 2), random_array(rng, 2_000, 2)
    expected = [int(bool(bytes_of(a.pattern(row)) & bytes_of(b.pattern(row)))) for row in range(len(a))]
    assert overlaps_batch(a, b).tolist() == expected


def test_chosen_pairs(path: str) -> None:
    a = PatternArray.of([Pattern(0, 4), Pattern(8, 4), Pattern(0, 1, (Dim(3, 5),))])
    b = PatternArray.of([Pattern(6, 4), Pattern(12, 4)])
    rows = np.array([0, 1, 1, 2, 2]), np.array([0, 0, 1, 0, 1])
    assert overlaps_batch(a, b, pairs=rows).tolist() == [DISJOINT, OVERLAP, DISJOINT, OVERLAP, OVERLAP]


def test_an_index_past_its_count_is_never_used(path: str) -> None:
    a = PatternArray.of([Pattern(0, 1, (Dim(100, 3), Dim(7, 3))), Pattern(0, 1, (Dim(100, 2), Dim(7, 3)))])
    b = PatternArray.of([Pattern(121, 1), Pattern(200, 1)])
    assert overlaps_batch(a, b).tolist() == [DISJOINT, DISJOINT]


def test_rows_that_would_overflow_are_exact(path: str) -> None:
    far = 1 << 62
    a = PatternArray.of([Pattern(-far, 4, (Dim(far, 3), Dim(12, 1 << 40)))] * 3 + [Pattern(-far - far // 2, 8)])
    b = PatternArray.of([Pattern(far + 4, 8), Pattern(far + 8, 8), Pattern(far + 12, 0), Pattern(far, 8)])
    assert overlaps_batch(a, b).tolist() == [DISJOINT, OVERLAP, DISJOINT, DISJOINT]


def test_hard_pairs_are_unknown_past_the_limit(path: str) -> None:
    dims = tuple(Dim(step, 60) for step in (10007, 20011, 30011, 40009, 50021, 60013, 70001))
    a = PatternArray.of([Pattern(0, 1, dims), Pattern(0, 1)])
    b = PatternArray.of([Pattern(300_001, 1, dims), Pattern(0, 1)])
    undecided = overlaps_batch(a, b, hard_limit=0).tolist()
    assert undecided[0] in (OVERLAP, UNKNOWN_PAIR)
    assert undecided[1] == OVERLAP


def test_arrays_that_do_not_fit_are_rejected() -> None:
    one = np.ones((1, 1), dtype=np.int64)
    with pytest.raises(ValueError, match="negative"):
        PatternArray(np.zeros(1), np.ones(1), one, -one)
    with pytest.raises(ValueError, match="belong together"):
        PatternArray(np.zeros(2), np.ones(1), one, one)
    fits = PatternArray.of([Pattern(0, 4)])
    with pytest.raises(ValueError, match="paired"):
        overlaps_batch(fits, PatternArray.of([Pattern(0, 4)] * 2))
    with pytest.raises(ValueError, match="rows 0 to 1"):
        overlaps_batch(fits, fits, pairs=(np.array([0, 1]), np.array([0, 0])))
    with pytest.raises(OverflowError):
        PatternArray.of([Pattern(1 << 63, 4)])


def test_no_patterns_at_all(path: str) -> None:
    none = PatternArray.of([])
    assert overlaps_batch(none, none).tolist() == []
