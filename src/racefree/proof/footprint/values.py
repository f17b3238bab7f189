"""What a value is at one launch, for all program instances at once: affine in its lanes, dense, or unknown.

Rows are program instances (axis 0, length 1 when all agree). The other axes are the folded loops in scope, outermost first,
then the dimensions of the tile. Integers are held signed in int64 whatever their width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

import numpy as np
import numpy.typing as npt

from racefree.access import Site

I64 = npt.NDArray[np.int64]
Bits = npt.NDArray[np.bool_]
Coef = int | I64

SAFE = 2.0**62
"""Sums of magnitudes below this cannot overflow int64."""


class TooBig(Exception):
    """A dense array over the current rows would pass the cell limit; the caller takes fewer rows."""

    def __init__(self, cells_per_row: int) -> None:
        self.cells_per_row = cells_per_row
        super().__init__(cells_per_row)


@dataclass(frozen=True, slots=True)
class Frame:
    """Where evaluation stands: how many rows, and the extents of the folded loops in scope (outermost first)."""

    rows: int
    loops: tuple[int, ...]
    cell_limit: int

    def extents(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return self.loops + shape


@dataclass(frozen=True, slots=True)
class Affine:
    """base + sum(coefs[i] * index_i) over the axes of the frame and the tile; known in every lane."""

    base: I64
    coefs: tuple[Coef, ...]


@dataclass(frozen=True, slots=True)
class Dense:
    """One integer per row and lane (axes of length 1 broadcast); `known` marks the cells that have a value."""

    data: I64
    known: Bits | None = None


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value this rung does not know, and why."""

    reason: str
    site: Site


@dataclass(frozen=True, slots=True)
class Box:
    """The rows where `rows` holds, times a half-open range per axis (None: the whole axis)."""

    rows: Bits
    bounds: tuple[tuple[Coef, Coef] | None, ...]


@dataclass(frozen=True, slots=True)
class Cells:
    """One boolean per row and lane (axes of length 1 broadcast)."""

    data: Bits


Region = Box | Cells


@dataclass(frozen=True, slots=True)
class Truth:
    """A boolean known up to an interval of sets: true at least on `must`, at most on `may`; exact when they are one object."""

    may: Region
    must: Region
    why: Unknown | None = None

    @property
    def exact(self) -> bool:
        return self.may is self.must


Number = Affine | Dense | Unknown
Val = Number | Truth


# ---- numbers ---------------------------------------------------------------------------------------------------------


def constant(value: int, axes: int) -> Affine:
    return Affine(np.array([value], dtype=np.int64), (0,) * axes)


def by_row(value: Dense | Unknown) -> Number:
    """A dense value that depends on the row alone as an affine one, so that what is added to it stays affine."""
    if isinstance(value, Unknown) or value.known is not None or value.data.size != value.data.shape[0]:
        return value
    return Affine(value.data.reshape(-1), (0,) * (value.data.ndim - 1))


def is_zero(coef: Coef) -> bool:
    return coef == 0 if isinstance(coef, int) else not coef.any()


def tidy(coef: Coef) -> Coef:
    """A coefficient equal in all rows becomes an int, so that uniform cases stay cheap."""
    if isinstance(coef, int):
        return coef
    if coef.size == 1 or (coef == coef.flat[0]).all():
        return int(coef.flat[0])
    return coef


def uniform(value: Affine) -> bool:
    """True when the value depends on the row alone."""
    return all(is_zero(c) for c in value.coefs)


def magnitude(coef: Coef) -> float:
    return float(abs(coef)) if isinstance(coef, int) else float(np.abs(coef).max(initial=0))


def fits_int64(value: Affine, extents: tuple[int, ...]) -> bool:
    """True when no partial sum of the value can leave int64."""
    total = float(np.abs(value.base.astype(np.float64)).max(initial=0.0))
    for coef, extent in zip(value.coefs, extents, strict=True):
        total += magnitude(coef) * max(extent - 1, 0)
    return total < SAFE


def value_range(value: Affine, extents: tuple[int, ...]) -> tuple[I64, I64]:
    """Smallest and largest value per row over all lanes (requires `fits_int64`)."""
    low = high = value.base
    for coef, extent in zip(value.coefs, extents, strict=True):
        if is_zero(coef) or extent <= 1:
            continue
        reach = np.asarray(coef, dtype=np.int64) * (extent - 1)
        low = low + np.minimum(reach, 0)
        high = high + np.maximum(reach, 0)
    return low, high


def align_coefs(coefs: tuple[Coef, ...], tile_axes: int, loops: int) -> tuple[Coef, ...]:
    """Insert zero coefficients for loops entered since the value was made."""
    have = len(coefs) - tile_axes
    return coefs[:have] + (0,) * (loops - have) + coefs[have:]


def align_cells(data: npt.NDArray[np.generic], tile_axes: int, loops: int) -> npt.NDArray[np.generic]:
    """Insert axes of length 1 for loops entered since the array was made."""
    have = data.ndim - 1 - tile_axes
    if have == loops:
        return data
    shape = data.shape[: 1 + have] + (1,) * (loops - have) + data.shape[1 + have :]
    return data.reshape(shape)


def guard_cells(shape: tuple[int, ...], frame: Frame) -> None:
    cells = 1
    for extent in shape:
        cells *= extent
    if cells > frame.cell_limit:
        raise TooBig(max(1, cells // max(shape[0], 1)))


def densify(value: Affine | Dense, frame: Frame, shape: tuple[int, ...]) -> Dense:
    """The same value, one cell per lane along every axis it depends on."""
    if isinstance(value, Dense):
        return value
    extents = frame.extents(shape)
    axes = len(extents)
    rows = max([value.base.size] + [c.size for c in value.coefs if not isinstance(c, int)])
    sizes = [rows] + [1 if is_zero(c) else n for c, n in zip(value.coefs, extents, strict=True)]
    guard_cells(tuple(sizes), frame)
    data = value.base.reshape((-1,) + (1,) * axes)
    for axis, (coef, extent) in enumerate(zip(value.coefs, extents, strict=True)):
        if is_zero(coef):
            continue
        index = np.arange(extent, dtype=np.int64).reshape((1,) * (1 + axis) + (-1,) + (1,) * (axes - 1 - axis))
        column = coef if isinstance(coef, int) else coef.reshape((-1,) + (1,) * axes)
        data = data + column * index
    return Dense(data)


def wrap_cells(data: I64, bits: int) -> I64:
    """Reduce to a signed integer of `bits`."""
    if bits >= 64:
        return data
    half = np.int64(1) << np.int64(bits - 1)
    mask = (np.int64(1) << np.int64(bits)) - 1
    if data.size and int(data.min()) >= -int(half) and int(data.max()) < int(half):
        return data
    return ((data + half) & mask) - half


def unsigned_cells(data: I64, bits: int) -> npt.NDArray[np.uint64]:
    """The unsigned reading of signed cells."""
    raw = data.astype(np.uint64)
    return raw if bits >= 64 else raw & np.uint64((1 << bits) - 1)


def wrapped(value: Affine, bits: int, frame: Frame, shape: tuple[int, ...]) -> Affine | Dense:
    """The value at its real width: unchanged where it fits, cell by cell where it wraps."""
    extents = frame.extents(shape)
    if fits_int64(value, extents):
        low, high = value_range(value, extents)
        if bits >= 64:
            return value
        half = 1 << (bits - 1)
        if int(low.min()) >= -half and int(high.max()) < half:
            return value
        if uniform(value):
            return Affine(wrap_cells(value.base, bits), value.coefs)
    with np.errstate(over="ignore"):
        return Dense(wrap_cells(densify(value, frame, shape).data, bits))


# ---- regions ---------------------------------------------------------------------------------------------------------

_TRUE = np.ones(1, dtype=np.bool_)
_FALSE = np.zeros(1, dtype=np.bool_)


def everywhere(axes: int) -> Box:
    return Box(_TRUE, (None,) * axes)


def nowhere(axes: int) -> Box:
    return Box(_FALSE, (None,) * axes)


def known(region: Region) -> Truth:
    return Truth(region, region)


def maybe(axes: int, why: Unknown) -> Truth:
    return Truth(everywhere(axes), nowhere(axes), why)


def is_empty(region: Region) -> bool:
    if isinstance(region, Cells):
        return not region.data.any()
    if not region.rows.any():
        return True
    return any(bound is not None and not (np.asarray(bound[0]) < np.asarray(bound[1])).any() for bound in region.bounds)


def is_full(region: Region) -> bool:
    if isinstance(region, Cells):
        return bool(region.data.all())
    return bool(region.rows.all()) and all(b is None for b in region.bounds)


def align_region(region: Region, tile_axes: int, loops: int) -> Region:
    if isinstance(region, Cells):
        data = align_cells(region.data, tile_axes, loops)
        return region if data is region.data else Cells(data.astype(np.bool_, copy=False))
    have = len(region.bounds) - tile_axes
    if have == loops:
        return region
    return Box(region.rows, region.bounds[:have] + (None,) * (loops - have) + region.bounds[have:])


def cells_of(region: Region, frame: Frame, shape: tuple[int, ...]) -> Bits:
    """The region cell by cell, along every axis it constrains."""
    if isinstance(region, Cells):
        return region.data
    extents = frame.extents(shape)
    axes = len(extents)
    data = region.rows.reshape((-1,) + (1,) * axes)
    for axis, (bound, extent) in enumerate(zip(region.bounds, extents, strict=True)):
        if bound is None:
            continue
        index = np.arange(extent, dtype=np.int64).reshape((1,) * (1 + axis) + (-1,) + (1,) * (axes - 1 - axis))
        low, high = (b if isinstance(b, int) else b.reshape((-1,) + (1,) * axes) for b in bound)
        inside = (index >= low) & (index < high)
        guard_cells(np.broadcast_shapes(data.shape, inside.shape), frame)
        data = data & inside
    return data


def meet(a: Region, b: Region, frame: Frame, shape: tuple[int, ...]) -> Region:
    if is_full(a):
        return b
    if is_full(b):
        return a
    if isinstance(a, Box) and isinstance(b, Box):
        return Box(a.rows & b.rows, tuple(_meet_bounds(x, y) for x, y in zip(a.bounds, b.bounds, strict=True)))
    left, right = cells_of(a, frame, shape), cells_of(b, frame, shape)
    guard_cells(np.broadcast_shapes(left.shape, right.shape), frame)
    return Cells(left & right)


def _meet_bounds(a: tuple[Coef, Coef] | None, b: tuple[Coef, Coef] | None) -> tuple[Coef, Coef] | None:
    if a is None or b is None:
        return b if a is None else a
    return _pick(np.maximum, a[0], b[0]), _pick(np.minimum, a[1], b[1])


def _pick(choose: np.ufunc, a: Coef, b: Coef) -> Coef:
    if isinstance(a, int) and isinstance(b, int):
        return int(choose(a, b))
    out: I64 = choose(np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64))
    return out


def join(a: Region, b: Region, frame: Frame, shape: tuple[int, ...]) -> Region:
    if is_empty(a) or is_full(b):
        return b
    if is_empty(b) or is_full(a):
        return a
    if isinstance(a, Box) and isinstance(b, Box) and not any(a.bounds) and not any(b.bounds):
        return Box(a.rows | b.rows, a.bounds)
    left, right = cells_of(a, frame, shape), cells_of(b, frame, shape)
    guard_cells(np.broadcast_shapes(left.shape, right.shape), frame)
    return Cells(left | right)


def outside(region: Region, frame: Frame, shape: tuple[int, ...]) -> Region:
    """The complement."""
    if isinstance(region, Box):
        limits = [i for i, b in enumerate(region.bounds) if b is not None]
        if not limits:
            return Box(~region.rows, region.bounds)
        if len(limits) == 1 and region.rows.all():
            flipped = _flip(region.bounds[limits[0]], frame.extents(shape)[limits[0]])
            if flipped is not None:
                bounds = list(region.bounds)
                bounds[limits[0]] = flipped
                return Box(region.rows, tuple(bounds))
    return Cells(~cells_of(region, frame, shape))


def _flip(bound: tuple[Coef, Coef] | None, extent: int) -> tuple[Coef, Coef] | None:
    """The complement of a prefix or a suffix of the axis, where it is one in every row."""
    assert bound is not None
    low, high = (np.asarray(b, dtype=np.int64) for b in bound)
    if (low <= 0).all():
        return tidy(np.clip(high, 0, extent)), extent
    if (high >= extent).all():
        return 0, tidy(np.clip(low, 0, extent))
    return None


def aligned(what: Val, tile_axes: int, loops: int) -> Val:
    """The same value with axes for the loops entered since it was made."""
    match what:
        case Affine():
            return Affine(what.base, align_coefs(what.coefs, tile_axes, loops))
        case Dense():
            sure = (
                None if what.known is None else align_cells(what.known, tile_axes, loops).astype(np.bool_, copy=False)
            )
            return Dense(align_cells(what.data, tile_axes, loops).astype(np.int64, copy=False), sure)
        case Unknown():
            return what
        case Truth():
            may = align_region(what.may, tile_axes, loops)
            return Truth(may, may if what.exact else align_region(what.must, tile_axes, loops), what.why)
        case _:
            assert_never(what)
