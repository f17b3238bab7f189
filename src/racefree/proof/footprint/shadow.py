"""Footprints as patterns of bytes: one strided pattern per row where lanes are affine, one per cell where they are not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from racefree.geometry import PatternArray, merge_runs
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.values import (
    I64,
    Affine,
    Bits,
    Box,
    Coef,
    Dense,
    Frame,
    Region,
    cells_of,
    densify,
    guard_cells,
    is_empty,
)


@dataclass(frozen=True, slots=True, eq=False)
class Lattice:
    """For each kept row: base (bytes), and per axis a coefficient (bytes) and a half-open range of indices.

    `rows` [N] are row numbers of the chunk; `coefs`, `low`, `high` are [N, axes].
    """

    rows: I64
    base: I64
    coefs: I64
    low: I64
    high: I64
    elem_bytes: int

    def patterns(self) -> PatternArray:
        """One pattern per row, its dims in the order of the axes, index 0 at `low`."""
        base = self.base + (self.coefs * self.low).sum(axis=1)
        elem = np.full(base.shape, self.elem_bytes, dtype=np.int64)
        return PatternArray(base, elem, self.coefs, np.maximum(self.high - self.low, 0))


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """Single elements: row, address in bytes, and the cell (flat index over `extents`) of each."""

    rows: I64
    address: I64
    cell: I64
    extents: tuple[int, ...]
    elem_bytes: int

    def patterns(self) -> PatternArray:
        n = len(self.address)
        empty = np.zeros((n, 0), dtype=np.int64)
        return PatternArray(self.address, np.full(n, self.elem_bytes, dtype=np.int64), empty, empty)


Shadow = Lattice | Points


@dataclass(frozen=True, slots=True, eq=False)
class Merged:
    """Single elements as the ranges of bytes that each program touches; `phases` are the elements' residues by their size."""

    programs: I64
    starts: I64
    ends: I64
    phases: frozenset[int]


def merged(part: Points, programs: I64) -> Merged:
    next_to = (part.address[1:] == part.address[:-1] + part.elem_bytes) & (part.rows[1:] == part.rows[:-1])
    breaks = np.flatnonzero(~next_to) + 1
    heads, lasts = np.append(0, breaks), np.append(breaks, len(part.address)) - 1
    runs = merge_runs(part.address[heads], part.address[lasts] + part.elem_bytes, programs[part.rows[heads]])
    phases = frozenset(np.flatnonzero(np.bincount(part.address % part.elem_bytes)).tolist())
    return Merged(runs.owner, runs.starts, runs.ends, phases)


def extents_of(footprint: Footprint) -> tuple[int, ...]:
    return footprint.loops + footprint.access.shape


def shadow(footprint: Footprint, region: Region, rows: int, origin: int, cell_limit: int) -> Shadow | None:
    """What the access touches where `region` holds, with addresses counted from `origin`; None when that is nothing."""
    if is_empty(region):
        return None
    if isinstance(footprint.address, Affine) and isinstance(region, Box):
        return _lattice(footprint, footprint.address, region, rows, origin)
    found = points(footprint, region, rows, origin, cell_limit)
    return _lattice_of_one(found) if found is not None and all(n == 1 for n in found.extents) else found


def present(part: Shadow, rows: int) -> Bits:
    """Which rows have elements."""
    found = np.zeros(rows, dtype=np.bool_)
    found[part.rows] = True
    return found


def cover(footprint: Footprint, part: Shadow, rows: int) -> Lattice | None:
    """A lattice that holds all the elements of a footprint at address 0, and others where a mask leaves some out."""
    if isinstance(part, Lattice):
        return part
    if not isinstance(footprint.address, Affine):
        return None
    whole = Box(present(part, rows), (None,) * len(part.extents))
    return _lattice(footprint, footprint.address, whole, rows, 0)


def _lattice_of_one(part: Points) -> Lattice:
    """The lattice of an access that has one element in each row."""
    zeros = np.zeros((len(part.rows), len(part.extents)), dtype=np.int64)
    return Lattice(part.rows, part.address, zeros, zeros, zeros + 1, part.elem_bytes)


def _column(coef: Coef, rows: int) -> I64:
    return np.broadcast_to(np.asarray(coef, dtype=np.int64), (rows,)) if rows else np.empty(0, dtype=np.int64)


def _lattice(footprint: Footprint, address: Affine, region: Box, rows: int, origin: int) -> Lattice | None:
    extents = extents_of(footprint)
    keep = np.flatnonzero(np.broadcast_to(region.rows, (rows,)))
    axes = len(extents)
    coefs = np.empty((len(keep), axes), dtype=np.int64)
    low = np.zeros((len(keep), axes), dtype=np.int64)
    high = np.empty((len(keep), axes), dtype=np.int64)
    for axis, (coef, extent, bound) in enumerate(zip(address.coefs, extents, region.bounds, strict=True)):
        coefs[:, axis] = _column(coef, rows)[keep]
        high[:, axis] = extent
        if bound is not None:
            low[:, axis] = np.clip(_column(bound[0], rows)[keep], 0, extent)
            high[:, axis] = np.clip(_column(bound[1], rows)[keep], 0, extent)
    alive = (high > low).all(axis=1)
    if not alive.any():
        return None
    base = np.broadcast_to(address.base, (rows,))[keep] - origin
    if alive.all():
        return Lattice(keep, base, coefs, low, high, footprint.access.element_bytes)
    return Lattice(keep[alive], base[alive], coefs[alive], low[alive], high[alive], footprint.access.element_bytes)


def points(footprint: Footprint, region: Region, rows: int, origin: int, cell_limit: int) -> Points | None:
    """Every active element on its own."""
    extents = extents_of(footprint)
    frame = Frame(rows, footprint.loops, cell_limit)
    shape = footprint.access.shape
    data = densify(footprint.address, frame, shape).data
    active: Bits = cells_of(region, frame, shape)
    full = (rows, *extents)
    guard_cells(full, frame)
    live = np.flatnonzero(np.broadcast_to(active, full))
    if not len(live):
        return None
    size = int(np.prod(extents, dtype=np.int64)) if extents else 1
    address = np.broadcast_to(data, full).reshape(-1)[live] - origin
    return Points(live // size, address, live % size, extents, footprint.access.element_bytes)


def points_of_rows(
    footprint: Footprint, region: Region, chosen: I64, rows: int, origin: int, limit: int
) -> Points | None:
    """Every active element of the chosen rows."""

    def pick(array: I64) -> I64:
        return array if array.shape[0] == 1 else array[chosen]

    def pick_coef(coef: Coef) -> Coef:
        return coef if isinstance(coef, int) else pick(coef)

    address: Affine | Dense
    if isinstance(footprint.address, Affine):
        address = Affine(pick(footprint.address.base), tuple(pick_coef(c) for c in footprint.address.coefs))
    else:
        address = Dense(pick(footprint.address.data))
    narrowed: Region
    if isinstance(region, Box):
        bounds = tuple(None if b is None else (pick_coef(b[0]), pick_coef(b[1])) for b in region.bounds)
        narrowed = Box(region.rows if region.rows.shape[0] == 1 else region.rows[chosen], bounds)
    else:
        narrowed = type(region)(region.data if region.data.shape[0] == 1 else region.data[chosen])
    smaller = Footprint(
        footprint.access,
        address,
        footprint.where,
        footprint.epoch,
        footprint.loops,
        footprint.nest,
        footprint.repeats,
    )
    found = points(smaller, narrowed, len(chosen), origin, limit)
    if found is None:
        return None
    return Points(chosen[found.rows], found.address, found.cell, found.extents, found.elem_bytes)
