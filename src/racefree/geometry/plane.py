"""Decides the overlap of accesses to an on-chip memory, whose addresses are a partition and a byte within the partition.

Rows of a location are laid over the partitions, so an access can move both coordinates with one index (a shifted access).
Both coordinates must meet for the *same* indices; comparing the partitions and the bytes on their own is exact only when
no index moves both. Here the two coordinates become one address, with a pitch so wide that no byte leaves its partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from racefree.access import Dim, Pattern
from racefree.geometry.decide import DEFAULT_BUDGET
from racefree.geometry.equation import UNKNOWN, Unknown
from racefree.geometry.overlap import overlap_witness, overlaps, span


@dataclass(frozen=True, slots=True)
class PlaneDim:
    """`count` positions; each moves `partition_step` partitions and `step_bytes` bytes, both of any sign."""

    partition_step: int
    step_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class PlanePattern:
    """Elements of `elem_bytes` at (partition + sum(partition_step_i * k_i), base_bytes + sum(step_i * k_i)).

    `base_bytes` is the address within the partition. Empty when some count is 0. One element lies in one partition.
    """

    partition: int
    base_bytes: int
    elem_bytes: int
    dims: tuple[PlaneDim, ...] = ()

    def bytes_axis(self) -> Pattern:
        """The byte coordinate alone."""
        return Pattern(self.base_bytes, self.elem_bytes, tuple(Dim(d.step_bytes, d.count) for d in self.dims))

    def partition_axis(self) -> Pattern:
        """The partition coordinate alone, one unit per partition."""
        return Pattern(self.partition, 1, tuple(Dim(d.partition_step, d.count) for d in self.dims))


@dataclass(frozen=True, slots=True)
class PlaneWitness:
    """A shared (partition, byte within the partition) and the indices of both sides that reach it."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    partition: int
    byte: int


def overlaps_2d(a: PlanePattern, b: PlanePattern, *, budget: int = DEFAULT_BUDGET) -> bool | None:
    """Whether two accesses to one memory share a byte of a partition; None when undecided (treat as possible)."""
    if overlaps(a.bytes_axis(), b.bytes_axis(), budget=budget) is False:
        return False
    if overlaps(a.partition_axis(), b.partition_axis(), budget=budget) is False:
        return False
    line_a, line_b, _, _ = _in_one_line(a, b)
    return overlaps(line_a, line_b, budget=budget)


def overlap_witness_2d(
    a: PlanePattern, b: PlanePattern, *, budget: int = DEFAULT_BUDGET
) -> PlaneWitness | Unknown | None:
    """A shared byte of two accesses to one memory, None when disjoint, UNKNOWN when undecided."""
    line_a, line_b, pitch, origin = _in_one_line(a, b)
    found = overlap_witness(line_a, line_b, budget=budget)
    if found is None or found is UNKNOWN:
        return found
    partition, offset = divmod(found.byte, pitch)
    return PlaneWitness(found.a, found.b, partition, offset + origin)


def _in_one_line(a: PlanePattern, b: PlanePattern) -> tuple[Pattern, Pattern, int, int]:
    """Both accesses with address partition * pitch + (byte - origin), which no two (partition, byte) pairs share."""
    low_a, high_a = span(a.bytes_axis())
    low_b, high_b = span(b.bytes_axis())
    origin = min(low_a, low_b)
    pitch = max(high_a, high_b) - origin
    return _line(a, pitch, origin), _line(b, pitch, origin), pitch, origin


def _line(pattern: PlanePattern, pitch: int, origin: int) -> Pattern:
    dims = tuple(Dim(dim.partition_step * pitch + dim.step_bytes, dim.count) for dim in pattern.dims)
    return Pattern(pattern.partition * pitch + pattern.base_bytes - origin, pattern.elem_bytes, dims)


def on_one_line(pattern: PlanePattern, *, pitch_bytes: int) -> Pattern:
    """The access as a one-dimensional pattern, partition p beginning at address p * `pitch_bytes`.

    With one pitch for a whole memory, patterns share a byte exactly when the accesses do, so the batch, the sweeps and the
    run lists serve on-chip memories too; the machine's address step between partitions is a good pitch. Raises ValueError
    when a byte of the access lies outside 0 to `pitch_bytes`, where it would be taken for one of another partition.
    """
    low, high = span(pattern.bytes_axis())
    if low < 0 or high > pitch_bytes:
        raise ValueError(f"bytes {low} to {high} leave a partition of {pitch_bytes} bytes")
    return _line(pattern, pitch_bytes, 0)


def rows_of_location(
    *,
    partition: int,
    base_bytes: int,
    row_bytes: int,
    offset_bytes: int,
    elem_bytes: int,
    dims: Sequence[Dim],
    limit: int = 4096,
) -> tuple[PlanePattern, ...] | None:
    """An access that addresses a location as one row-major matrix of `row_bytes` wide rows, one row per partition.

    `offset_bytes` and the steps of `dims` count in that matrix; the location's first row starts at `partition` and
    `base_bytes`. Where the column of a dim stays within the row this is one pattern; where it runs past the row's end, the
    access is split, at the dim that moves furthest, until each part stays within rows. Parts have the same dims, with smaller
    counts. None when more than `limit` parts are needed. Raises ValueError when `row_bytes` is not positive, or a count or
    the element size is negative.
    """
    if row_bytes <= 0 or elem_bytes < 0 or any(dim.count < 0 for dim in dims):
        raise ValueError(f"rows of {row_bytes} bytes, elements of {elem_bytes}, dims {dims}")
    if elem_bytes == 0 or any(dim.count == 0 for dim in dims):
        return ()
    parts: list[PlanePattern] = []
    for row, column, size, kept in _split(offset_bytes, elem_bytes, tuple(dims), row_bytes):
        if len(parts) == limit:
            return None
        plane = tuple(PlaneDim(*moves, dim.count) for moves, dim in kept)
        parts.append(PlanePattern(partition + row, base_bytes + column, size, plane))
    return tuple(parts)


_Moves = tuple[int, int]
_Part = tuple[int, int, int, tuple[tuple[_Moves, Dim], ...]]


def _split(offset: int, elem: int, dims: tuple[Dim, ...], row_bytes: int) -> Iterator[_Part]:
    row, column = divmod(offset, row_bytes)
    kept = tuple((_nearest(dim.step_bytes, row_bytes), dim) for dim in dims)
    moves = [step * (dim.count - 1) for (_, step), dim in kept]
    low = column + sum(move for move in moves if move < 0)
    high = column + sum(move for move in moves if move > 0) + elem
    if low >= 0 and high <= row_bytes:
        yield row, column, elem, kept
    elif any(moves):
        yield from _split_dim(offset, elem, dims, row_bytes)
    else:
        # Each element runs across the end of its row: its bytes go on in the next partition.
        inside = row_bytes - column
        yield row, column, inside, kept
        yield from _split(offset + inside, elem - inside, dims, row_bytes)


def _split_dim(offset: int, elem: int, dims: tuple[Dim, ...], row_bytes: int) -> Iterator[_Part]:
    """Halve the dim whose column moves furthest; halves, because a long stretch of it may stay within its row."""
    reach = [abs(_nearest(dim.step_bytes, row_bytes)[1]) * (dim.count - 1) for dim in dims]
    at = max(range(len(dims)), key=lambda i: (reach[i], i))
    dim, others = dims[at], (dims[:at], dims[at + 1 :])
    first = dim.count // 2
    for begin, count in ((0, first), (first, dim.count - first)):
        middle = Dim(dim.step_bytes, count)
        yield from _split(offset + dim.step_bytes * begin, elem, (*others[0], middle, *others[1]), row_bytes)


def _nearest(step: int, row_bytes: int) -> _Moves:
    """The step as (rows, bytes within the row), with the bytes as small as possible in magnitude."""
    rows, rest = divmod(step, row_bytes)
    return (rows + 1, rest - row_bytes) if 2 * rest > row_bytes else (rows, rest)
