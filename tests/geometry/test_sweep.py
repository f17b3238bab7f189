"""The sweeps yield exactly the pairs whose ranges meet, once each."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racefree.errors import Refused
from racefree.geometry import candidate_pairs, candidate_pairs_within, count_candidate_pairs

RANGE = st.tuples(st.integers(-10, 30), st.integers(0, 12)).map(lambda r: (r[0], r[0] + r[1]))
RANGES = st.lists(RANGE, max_size=14)
Columns = tuple[np.ndarray, np.ndarray]


def columns(ranges: list[tuple[int, int]]) -> Columns:
    table = np.array(ranges, dtype=np.int64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def flat(chunks: Iterable[Columns]) -> list[tuple[int, int]]:
    return sorted((int(i), int(j)) for first, second in chunks for i, j in zip(first, second, strict=True))


def meet(x: tuple[int, int], y: tuple[int, int]) -> bool:
    return max(x[0], y[0]) < min(x[1], y[1])


@settings(max_examples=200, deadline=None)
@given(RANGES, RANGES, st.sampled_from([1, 3, 1000]))
def test_two_lists(a: list[tuple[int, int]], b: list[tuple[int, int]], chunk: int) -> None:
    expected = sorted((i, j) for i, x in enumerate(a) for j, y in enumerate(b) if meet(x, y))
    assert flat(candidate_pairs(*columns(a), *columns(b), chunk_pairs=chunk)) == expected
    assert count_candidate_pairs(*columns(a), *columns(b)) == len(expected)


@settings(max_examples=200, deadline=None)
@given(RANGES, st.lists(st.integers(0, 3), min_size=14, max_size=14) | st.none(), st.sampled_from([1, 3, 1000]))
def test_one_list(ranges: list[tuple[int, int]], groups: list[int] | None, chunk: int) -> None:
    group = None if groups is None else np.array(groups[: len(ranges)], dtype=np.int64)
    expected = [
        (i, j)
        for i, x in enumerate(ranges)
        for j, y in enumerate(ranges)
        if i < j and meet(x, y) and (groups is None or groups[i] != groups[j])
    ]
    assert flat(candidate_pairs_within(*columns(ranges), group, chunk_pairs=chunk)) == expected


def test_more_pairs_than_the_limit_are_refused_before_any_is_given() -> None:
    starts, ends = np.zeros(100, dtype=np.int64), np.ones(100, dtype=np.int64)
    with pytest.raises(Refused, match="10000 pairs"):
        next(candidate_pairs(starts, ends, starts, ends, limit=9999))
    assert len(flat(candidate_pairs(starts, ends, starts, ends, limit=10000))) == 10000
    with pytest.raises(Refused, match="too-many-pairs"):
        next(candidate_pairs_within(starts, ends, limit=4949))
    assert len(flat(candidate_pairs_within(starts, ends, limit=4950))) == 4950


def test_pairs_within_one_group_cost_nothing() -> None:
    # 200,000 ranges of one group on the same bytes, which would be 20 billion pairs, and three of another.
    n = 200_000
    starts = np.concatenate([np.arange(n) % 1000, [0, 500, 5000]]).astype(np.int64)
    ends = starts + 1000
    group = np.concatenate([np.zeros(n, dtype=np.int64), [1, 1, 1]])
    started = time.perf_counter()
    chunks = list(candidate_pairs_within(starts, ends, group))
    assert time.perf_counter() - started < 30
    found = np.concatenate([second for _, second in chunks])
    assert set(found.tolist()) == {n, n + 1}
    assert np.count_nonzero(found == n) == n
    assert np.count_nonzero(found == n + 1) == n


def test_chunks_stay_near_their_size() -> None:
    starts = np.arange(3000, dtype=np.int64)
    chunks = list(candidate_pairs_within(starts, starts + 50, chunk_pairs=1000))
    assert max(len(first) for first, _ in chunks) <= 1050
    assert sum(len(first) for first, _ in chunks) == 3000 * 49 - 49 * 50 // 2
