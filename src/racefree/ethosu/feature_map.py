"""Feature maps: from coordinates to bytes.

A map is up to four tiles; tile 0 holds the rows below `height0` of the columns below `width0`, tile 1 the columns beyond
it (its rows below `height1`), tiles 2 and 3 the rows below those. Channels are contiguous (NHWC), or come in bricks of 16
(NHCWB16) with a stride from brick to brick.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from racefree.access import Dim, Pattern

BRICK = 16


@dataclass(frozen=True, slots=True)
class Box:
    """Half-open ranges of rows, columns and channels."""

    rows: tuple[int, int]
    columns: tuple[int, int]
    channels: tuple[int, int]

    @property
    def empty(self) -> bool:
        return any(low >= high for low, high in (self.rows, self.columns, self.channels))


@dataclass(frozen=True, slots=True)
class FeatureMap:
    """Where a map lies. Strides in bytes: from row to row, column to column, brick to brick."""

    space: str
    bases: tuple[int, int, int, int]
    height0: int
    height1: int
    width0: int
    stride_y: int
    stride_x: int
    stride_c: int
    element_bytes: int
    bricks: bool

    def patterns(self, box: Box) -> Iterator[Pattern]:
        """The bytes of the part of the map inside a box."""
        left = (box.columns[0], min(box.columns[1], self.width0))
        right = (max(box.columns[0], self.width0), box.columns[1])
        for columns, height, first_tile, shift in ((left, self.height0, 0, 0), (right, self.height1, 1, self.width0)):
            if columns[0] >= columns[1]:
                continue
            upper = (box.rows[0], min(box.rows[1], height))
            lower = (max(box.rows[0], height), box.rows[1])
            at = (columns[0] - shift, columns[1] - shift)
            yield from self._tile(self.bases[first_tile], upper, at, box.channels)
            yield from self._tile(self.bases[first_tile + 2], (lower[0] - height, lower[1] - height), at, box.channels)

    def _tile(
        self, base: int, rows: tuple[int, int], columns: tuple[int, int], channels: tuple[int, int]
    ) -> Iterator[Pattern]:
        if rows[0] >= rows[1] or channels[0] >= channels[1]:
            return
        size = self.element_bytes
        step_x = BRICK * size if self.bricks else self.stride_x
        start = base + rows[0] * self.stride_y + columns[0] * step_x
        plane = (Dim(self.stride_y, rows[1] - rows[0]), Dim(step_x, columns[1] - columns[0]))
        if not self.bricks:
            yield Pattern(start + channels[0] * size, (channels[1] - channels[0]) * size, plane)
            return
        for first, count, low, high in _brick_runs(*channels):
            bricks = (*plane, Dim(self.stride_c, count)) if count > 1 else plane
            yield Pattern(start + first * self.stride_c + low * size, (high - low) * size, bricks)


def _brick_runs(low: int, high: int) -> Iterator[tuple[int, int, int, int]]:
    """Channels as `(first brick, how many, from, to)`: whole bricks together, cut ones alone."""
    while low < high:
        brick, inside = divmod(low, BRICK)
        whole = (high - low) // BRICK if inside == 0 else 0
        if whole:
            yield brick, whole, 0, BRICK
            low += whole * BRICK
        else:
            end = min(BRICK, inside + high - low)
            yield brick, 1, inside, end
            low += end - inside
