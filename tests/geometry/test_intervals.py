"""Runs of bytes: what patterns touch, merged per owner, and where owners meet."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from geometry_enumeration import bytes_of, patterns
from hypothesis import given, settings
from hypothesis import strategies as st

from racefree.access import Dim, Pattern
from racefree.geometry import Meeting, PatternArray, Runs, any_meeting, first_meeting_runs, merge_runs, runs_of

OWNED = st.lists(
    st.tuples(st.integers(-20, 40), st.integers(0, 9), st.integers(0, 3)).map(lambda r: (r[0], r[0] + r[1], r[2])),
    max_size=14,
)


def columns(owned: list[tuple[int, int, int]]) -> Runs:
    table = np.array(owned, dtype=np.int64).reshape(-1, 3)
    return Runs(table[:, 0], table[:, 1], table[:, 2])


def touched(runs: Runs) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for start, end, owner in zip(*(column.tolist() for column in runs), strict=True):
        found.setdefault(owner, set()).update(range(start, end))
    return {owner: touches for owner, touches in found.items() if touches}


@settings(max_examples=150, deadline=None)
@given(st.lists(patterns(max_dims=3), max_size=5))
def test_runs_are_the_bytes_of_each_pattern(chosen: list[Pattern]) -> None:
    runs = runs_of(PatternArray.of(chosen))
    assert runs is not None
    assert touched(runs) == {row: bytes_of(p) for row, p in enumerate(chosen) if bytes_of(p)}


def test_contiguous_dims_are_one_run() -> None:
    tiles = PatternArray.of([Pattern(base, 4, (Dim(-8192, 3), Dim(4, 512), Dim(2048, 2))) for base in (0, 1 << 40)])
    runs = runs_of(tiles)
    assert runs is not None
    assert runs.starts.tolist() == [-16384, -8192, 0, (1 << 40) - 16384, (1 << 40) - 8192, 1 << 40]
    assert (runs.ends - runs.starts).tolist() == [4096] * 6
    assert runs.owner.tolist() == [0, 0, 0, 1, 1, 1]


def test_too_many_runs_are_none_and_too_large_addresses_an_error() -> None:
    sparse = PatternArray.of([Pattern(0, 4, (Dim(8, 1000),))])
    assert runs_of(sparse, limit=999) is None
    assert runs_of(sparse, limit=1000) is not None
    with pytest.raises(OverflowError):
        runs_of(PatternArray.of([Pattern(1 << 61, 4)]))


@settings(max_examples=150, deadline=None)
@given(OWNED, st.booleans())
def test_merged_runs_cover_the_same_bytes_without_touching(owned: list[tuple[int, int, int]], wide: bool) -> None:
    # Owners far apart in memory take another way to the same result.
    far = (1 << 61) if wide else 0
    placed = [(start + far * (owner % 2), end + far * (owner % 2), owner) for start, end, owner in owned]
    merged = merge_runs(*columns(placed))
    shift = far * (merged.owner % 2)
    back = Runs(merged.starts - shift, merged.ends - shift, merged.owner)
    assert touched(back) == touched(columns(owned))
    rows = list(zip(merged.owner.tolist(), merged.starts.tolist(), merged.ends.tolist(), strict=True))
    assert rows == sorted(rows)
    assert all(before[0] != after[0] or before[2] < after[1] for before, after in pairwise(rows))


@settings(max_examples=300, deadline=None)
@given(OWNED)
def test_the_first_meeting_of_two_owners(owned: list[tuple[int, int, int]]) -> None:
    found = touched(columns(owned))
    shared = {byte for x in found for y in found if x < y for byte in found[x] & found[y]}
    meeting = first_meeting_runs(*columns(owned))
    assert any_meeting(*columns(owned)) is bool(shared)
    if not shared:
        assert meeting is None
        return
    assert isinstance(meeting, Meeting)
    assert meeting.byte == min(shared)
    assert meeting.first != meeting.second
    assert meeting.byte in found[meeting.first] & found[meeting.second]


def test_duplicates_of_one_owner_are_no_meeting() -> None:
    assert any_meeting(*columns([(0, 8, 5), (0, 8, 5), (4, 12, 5), (12, 16, 6)])) is False
    assert first_meeting_runs(*columns([(0, 8, 5), (0, 8, 5), (4, 13, 5), (12, 16, 6)])) == Meeting(5, 6, 12)
