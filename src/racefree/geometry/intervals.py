"""Sets of byte runs that belong to owners: which bytes each pattern touches as runs, and whether two owners meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from racefree.geometry.pattern_array import Int64s, PatternArray

RUN_LIMIT = 1 << 24


class Runs(NamedTuple):
    """Half-open byte runs [starts, ends) and the owner of each."""

    starts: Int64s
    ends: Int64s
    owner: Int64s


@dataclass(frozen=True, slots=True)
class Meeting:
    """A byte that runs of two different owners share; `first` is the owner whose run starts earlier."""

    first: int
    second: int
    byte: int


def runs_of(patterns: PatternArray, *, limit: int = RUN_LIMIT) -> Runs | None:
    """The runs of consecutive bytes of each pattern, owned by its row; None when there would be more than `limit`.

    Dims that continue a run without a gap are part of it. The runs of one pattern may touch or overlap (`merge_runs`).
    Raises OverflowError when a pattern is so large that addresses could leave 64 bits.
    """
    if not bool(patterns.safe().all()):
        raise OverflowError("a pattern reaches addresses beyond 2^59 bytes")
    rows = np.flatnonzero(~patterns.empty())
    shapes, kind = _shapes(patterns, rows)
    offsets = [_Offsets.of(patterns, int(row)) for row in shapes]
    members = np.bincount(kind, minlength=len(shapes)).tolist()
    if sum(shape.count * times for shape, times in zip(offsets, members, strict=True)) > limit:
        return None
    parts = [_place(patterns, rows[kind == k], shape) for k, shape in enumerate(offsets)]
    if not parts:
        nothing = np.empty(0, dtype=np.int64)
        return Runs(nothing, nothing, nothing)
    return Runs(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def merge_runs(starts: Int64s, ends: Int64s, owner: Int64s) -> Runs:
    """Each owner's runs joined where they touch or overlap, sorted by owner, then start. Empty runs are dropped."""
    starts, ends, owner = _nonempty(starts, ends, owner)
    if not len(starts):
        return Runs(starts, ends, owner)
    order = np.lexsort((starts, owner))
    starts, ends, owner = starts[order], ends[order], owner[order]
    reach = _running_reach(starts, ends, owner)
    fresh = np.concatenate([[True], (owner[1:] != owner[:-1]) | (starts[1:] > reach[:-1])])
    heads = np.flatnonzero(fresh)
    lasts = np.append(heads[1:], len(starts)) - 1
    return Runs(starts[heads], reach[lasts], owner[heads])


def first_meeting_runs(starts: Int64s, ends: Int64s, owner: Int64s) -> Meeting | None:
    """The lowest byte at which a run begins inside another owner's run, None when no two owners share a byte.

    Exact, in O(n log n): once each owner's runs are merged, any overlap is between different owners.
    """
    merged = merge_runs(starts, ends, owner)
    order = np.lexsort((merged.owner, merged.starts))
    starts, ends, owner = (column[order] for column in merged)
    reach = np.maximum.accumulate(ends)
    inside = np.flatnonzero(starts[1:] < reach[:-1]) + 1
    if not len(inside):
        return None
    at = int(inside[0])
    # Nothing before `at` overlaps, so the run just before it reaches furthest.
    return Meeting(int(owner[at - 1]), int(owner[at]), int(starts[at]))


def any_meeting(starts: Int64s, ends: Int64s, group: Int64s) -> bool:
    """True when ranges of different groups share a byte; ranges of one group may overlap. O(n log n)."""
    return first_meeting_runs(starts, ends, group) is not None


def _nonempty(starts: Int64s, ends: Int64s, owner: Int64s) -> Runs:
    columns = tuple(np.asarray(column, dtype=np.int64) for column in (starts, ends, owner))
    if not columns[0].shape == columns[1].shape == columns[2].shape or columns[0].ndim != 1:
        raise ValueError(f"shapes {[column.shape for column in columns]} differ")
    kept = columns[0] < columns[1]
    return Runs(*(column[kept] for column in columns))


def _running_reach(starts: Int64s, ends: Int64s, owner: Int64s) -> Int64s:
    """The largest end so far among the runs of the same owner; the runs are sorted by owner."""
    segment = np.cumsum(np.concatenate([[0], (owner[1:] != owner[:-1]).astype(np.int64)]))
    low = int(starts.min())
    width = int(ends.max()) - low + 1
    if width * (int(segment[-1]) + 1) < 1 << 62:
        shift = segment * width
        reach: Int64s = np.maximum.accumulate(ends - low + shift) - shift + low
        return reach
    # Too wide to lay the owners side by side: use the ranks of the ends in their place.
    values, rank = np.unique(ends, return_inverse=True)
    shift = segment * len(values)
    wide: Int64s = values[np.maximum.accumulate(rank + shift) - shift]
    return wide


def _shapes(patterns: PatternArray, rows: npt.NDArray[np.intp]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """A row for each different (elem, steps, counts), and for each of `rows` which of them it has."""
    table = np.column_stack([patterns.elem[rows], patterns.steps[rows], patterns.counts[rows]])
    if not len(table) or bool((table == table[0]).all()):
        return rows[:1], np.zeros(len(rows), dtype=np.intp)
    _, first, kind = np.unique(table, axis=0, return_index=True, return_inverse=True)
    return rows[first], kind.reshape(-1)


@dataclass(frozen=True, slots=True)
class _Offsets:
    """The runs of a pattern relative to its base: one run of `length` bytes per combination of the dims left."""

    low: int
    length: int
    dims: tuple[tuple[int, int], ...]
    count: int

    @classmethod
    def of(cls, patterns: PatternArray, row: int) -> _Offsets:
        pattern = patterns.pattern(row)
        length, low, count = pattern.elem_bytes, 0, 1
        dims = []
        for dim in sorted(pattern.dims, key=lambda dim: abs(dim.step_bytes)):
            step, moves = abs(dim.step_bytes), dim.count - 1
            low += min(dim.step_bytes * moves, 0)
            if step <= length:
                length += step * moves
            elif moves:
                dims.append((step, dim.count))
                count *= dim.count
        return cls(low, length, tuple(dims), count)

    def starts(self) -> Int64s:
        offsets = np.array([self.low], dtype=np.int64)
        for step, count in reversed(self.dims):
            offsets = (offsets[:, None] + step * np.arange(count, dtype=np.int64)).ravel()
        return offsets


def _place(patterns: PatternArray, rows: npt.NDArray[np.intp], shape: _Offsets) -> Runs:
    starts = (patterns.base[rows][:, None] + shape.starts()).ravel()
    return Runs(starts, starts + shape.length, np.repeat(rows.astype(np.int64), shape.count))
