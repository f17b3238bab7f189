"""Finds the pairs of half-open byte ranges that meet, without looking at the others."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from racefree.errors import Refused

Int64s = npt.NDArray[np.int64]
Pairs = tuple[Int64s, Int64s]

CHUNK_PAIRS = 1 << 20


def candidate_pairs(
    starts_a: Int64s,
    ends_a: Int64s,
    starts_b: Int64s,
    ends_b: Int64s,
    *,
    limit: int | None = None,
    chunk_pairs: int = CHUNK_PAIRS,
) -> Iterator[Pairs]:
    """Chunks (i, j) of all pairs whose ranges [starts_a[i], ends_a[i]) and [starts_b[j], ends_b[j]) share a byte.

    Each pair comes once, in chunks of about `chunk_pairs`; empty ranges meet nothing. O(n log n + output) time. Raises
    `Refused` ("too-many-pairs") before the first chunk when there are more than `limit` pairs.
    """
    a, b = _sorted_nonempty(starts_a, ends_a), _sorted_nonempty(starts_b, ends_b)
    # A meeting pair's later start lies in the other range; at a tie the start of `b` counts as the later one.
    b_in_a = _Slices(np.searchsorted(b.starts, a.starts, "left"), np.searchsorted(b.starts, a.ends, "left"))
    a_in_b = _Slices(np.searchsorted(a.starts, b.starts, "right"), np.searchsorted(a.starts, b.ends, "left"))
    _check_limit(b_in_a.total + a_in_b.total, limit)
    for outer, inner in b_in_a.expand(chunk_pairs):
        yield a.order[outer], b.order[inner]
    for outer, inner in a_in_b.expand(chunk_pairs):
        yield a.order[inner], b.order[outer]


def count_candidate_pairs(starts_a: Int64s, ends_a: Int64s, starts_b: Int64s, ends_b: Int64s) -> int:
    """How many pairs `candidate_pairs` yields, in O(n log n)."""
    a, b = _sorted_nonempty(starts_a, ends_a), _sorted_nonempty(starts_b, ends_b)
    apart = np.searchsorted(np.sort(b.ends), a.starts, "right").sum()
    apart += (len(b.starts) - np.searchsorted(b.starts, a.ends, "left")).sum()
    return len(a.starts) * len(b.starts) - int(apart)


def candidate_pairs_within(
    starts: Int64s,
    ends: Int64s,
    group: Int64s | None = None,
    *,
    limit: int | None = None,
    chunk_pairs: int = CHUNK_PAIRS,
) -> Iterator[Pairs]:
    """Chunks (i, j), i < j, of the pairs of one list whose ranges share a byte; with `group`, only of different groups.

    Each pair comes once. Pairs of one group cost nothing, however many there are: sorted by start, a range's partners are a
    slice, and the stretches of its own group in that slice are skipped whole; there is at most one more of them than of
    others. Raises `Refused` ("too-many-pairs") before the first chunk when there are more than `limit` pairs.
    """
    ids = np.arange(len(starts), dtype=np.int64) if group is None else np.asarray(group, dtype=np.int64)
    ranges = _sorted_nonempty(starts, ends, ids)
    n = len(ranges.starts)
    if n == 0:
        return
    sorted_ids = ids[ranges.order]
    stretch = np.concatenate([[0], np.cumsum(sorted_ids[1:] != sorted_ids[:-1])]).astype(np.int64)
    heads = np.concatenate([np.flatnonzero(np.diff(stretch, prepend=-1)), [n]]).astype(np.int64)
    past = np.searchsorted(ranges.starts, ranges.ends, "left").astype(np.int64)
    # The stretch a range stands in is its own group's; partners begin with the next one.
    slices = _Slices(stretch + 1, stretch[past - 1] + 1)
    if limit is not None:
        _check_limit(
            sum(int(pieces.total) for _, pieces in _pieces(slices, sorted_ids, heads, past, chunk_pairs)), limit
        )
    for outer, pieces in _pieces(slices, sorted_ids, heads, past, chunk_pairs):
        for piece, inner in pieces.expand(chunk_pairs):
            first, second = ranges.order[outer[piece]], ranges.order[inner]
            yield np.minimum(first, second), np.maximum(first, second)


def _pieces(slices: _Slices, ids: Int64s, heads: Int64s, past: Int64s, chunk: int) -> Iterator[tuple[Int64s, _Slices]]:
    """For chunks of ranges: which range, and the slice of its partners in one stretch of another group."""
    for outer, at in slices.expand(chunk):
        other = ids[heads[at]] != ids[outer]
        outer, at = outer[other], at[other]
        yield outer, _Slices(heads[at], np.minimum(heads[at + 1], past[outer]))


class _Ranges:
    """Ranges by ascending start, and where each stood before."""

    __slots__ = ("ends", "order", "starts")

    def __init__(self, starts: Int64s, ends: Int64s, order: Int64s) -> None:
        self.starts, self.ends, self.order = starts, ends, order


def _sorted_nonempty(starts: Int64s, ends: Int64s, tie: Int64s | None = None) -> _Ranges:
    starts, ends = np.asarray(starts, dtype=np.int64), np.asarray(ends, dtype=np.int64)
    if starts.shape != ends.shape or starts.ndim != 1:
        raise ValueError(f"starts have shape {starts.shape} and ends {ends.shape}")
    kept = np.flatnonzero(starts < ends)
    keys = (starts[kept],) if tie is None else (tie[kept], starts[kept])
    order = kept[np.lexsort(keys)].astype(np.int64)
    return _Ranges(starts[order], ends[order], order)


class _Slices:
    """One slice [low, high) per outer index; a slice that runs backwards is empty."""

    __slots__ = ("low", "sizes", "total")

    def __init__(self, low: npt.NDArray[np.integer], high: npt.NDArray[np.integer]) -> None:
        self.low = low.astype(np.int64)
        self.sizes = np.maximum(high.astype(np.int64) - self.low, 0)
        self.total = int(self.sizes.sum())

    def expand(self, chunk: int) -> Iterator[Pairs]:
        """Chunks (outer index, inner index) of about `chunk` pairs, at most one slice more than that."""
        filled = np.flatnonzero(self.sizes).astype(np.int64)
        sums = np.cumsum(self.sizes[filled])
        at = 0
        while at < len(filled):
            done = int(sums[at - 1]) if at else 0
            stop = max(at + 1, int(np.searchsorted(sums, done + chunk, "right")))
            outer = filled[at:stop]
            sizes = self.sizes[outer]
            first = sums[at:stop] - sizes - done
            inner = np.arange(int(sums[stop - 1]) - done) + np.repeat(self.low[outer] - first, sizes)
            yield np.repeat(outer, sizes), inner
            at = stop


def _check_limit(total: int, limit: int | None) -> None:
    if limit is not None and total > limit:
        raise Refused("too-many-pairs", f"{total} pairs of byte ranges meet, more than the limit of {limit}")
