"""Moving lanes about: splat, broadcast, reshape, transpose, join, split, reductions and scans of known integers."""

from __future__ import annotations

from typing import assert_never

import numpy as np
import numpy.typing as npt

from racefree.proof.footprint.values import (
    I64,
    Affine,
    Bits,
    Box,
    Cells,
    Coef,
    Dense,
    Frame,
    Region,
    Truth,
    Unknown,
    Val,
    cells_of,
    densify,
    guard_cells,
    is_zero,
    unsigned_cells,
    wrap_cells,
)

Shape = tuple[int, ...]


def splat(scalar: Val, dims: int) -> Val:
    """A scalar as a tile of `dims` dimensions."""
    match scalar:
        case Affine():
            return Affine(scalar.base, scalar.coefs + (0,) * dims)
        case Dense():
            ones = (1,) * dims
            known = None if scalar.known is None else scalar.known.reshape(scalar.known.shape + ones)
            return Dense(scalar.data.reshape(scalar.data.shape + ones), known)
        case Truth():
            return spread_truth(scalar, dims)
        case Unknown():
            return scalar
        case _:
            assert_never(scalar)


def spread_truth(truth: Truth, dims: int) -> Truth:
    def spread(region: Region) -> Region:
        if isinstance(region, Box):
            return Box(region.rows, region.bounds + (None,) * dims)
        return Cells(region.data.reshape(region.data.shape + (1,) * dims))

    may = spread(truth.may)
    return Truth(may, may if truth.exact else spread(truth.must), truth.why)


def expand(value: Val, axis: int) -> Val:
    """Insert an axis of length 1 before `axis` (counted over loops and tile)."""

    def cells(data: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        return np.expand_dims(data, axis + 1)

    def coefs(values: tuple[Coef, ...]) -> tuple[Coef, ...]:
        return (*values[:axis], 0, *values[axis:])

    def box(region: Box) -> Box:
        return Box(region.rows, (*region.bounds[:axis], None, *region.bounds[axis:]))

    return _rearranged(value, cells, coefs, box)


def permute(value: Val, loops: int, order: Shape) -> Val:
    """Result dimension i is operand dimension order[i]."""
    axes = tuple(range(loops + 1)) + tuple(loops + 1 + d for d in order)

    def cells(data: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        return np.transpose(data, axes)

    def coefs(values: tuple[Coef, ...]) -> tuple[Coef, ...]:
        return values[:loops] + tuple(values[loops + d] for d in order)

    def box(region: Box) -> Box:
        return Box(region.rows, region.bounds[:loops] + tuple(region.bounds[loops + d] for d in order))

    return _rearranged(value, cells, coefs, box)


def _rearranged(value: Val, cells, coefs, box) -> Val:  # type: ignore[no-untyped-def]
    match value:
        case Affine():
            return Affine(value.base, coefs(value.coefs))
        case Dense():
            return Dense(cells(value.data), None if value.known is None else _padded(value, cells))
        case Truth():

            def region(r: Region) -> Region:
                return box(r) if isinstance(r, Box) else Cells(cells(r.data))

            may = region(value.may)
            return Truth(may, may if value.exact else region(value.must), value.why)
        case Unknown():
            return value
        case _:
            assert_never(value)


def _padded(value: Dense, cells) -> Bits:  # type: ignore[no-untyped-def]
    assert value.known is not None
    known = value.known
    if known.ndim != value.data.ndim:
        known = np.broadcast_to(known, value.data.shape)
    out: Bits = cells(known)
    return out


def broadcast(value: Val, old: Shape, new: Shape) -> Val:
    """Axes of extent 1 grow: what was there holds all along the axis."""
    dims = len(new)
    grown = [i for i in range(dims) if old[i] != new[i]]

    def coefs(values: tuple[Coef, ...]) -> tuple[Coef, ...]:
        loops = len(values) - dims
        return tuple(0 if i - loops in grown else c for i, c in enumerate(values))

    def box(region: Box) -> Box:
        loops = len(region.bounds) - dims
        rows, bounds = region.rows, list(region.bounds)
        for axis in grown:
            bound = bounds[loops + axis]
            if bound is not None:
                low, high = (np.asarray(b, dtype=np.int64) for b in bound)
                rows = rows & ((low <= 0) & (high >= 1))
                bounds[loops + axis] = None
        return Box(rows, tuple(bounds))

    return _rearranged(value, lambda data: data, coefs, box)


def same_in_all_lanes(value: Val, loops: int) -> bool:
    match value:
        case Affine():
            return all(is_zero(c) for c in value.coefs[loops:])
        case Dense():
            return all(n == 1 for n in value.data.shape[1 + loops :])
        case _:
            return False


# ---- reshape ---------------------------------------------------------------------------------------------------------


def reshape(value: Val, old: Shape, new: Shape, frame: Frame) -> Val:
    """Row-major reinterpretation of the tile's dimensions."""
    match value:
        case Unknown():
            return value
        case Affine():
            loops = len(frame.loops)
            coefs = _reshaped_coefs(value.coefs[loops:], old, new)
            if coefs is not None:
                return Affine(value.base, value.coefs[:loops] + coefs)
            return _reshaped_cells(densify(value, frame, old), old, new, frame)
        case Dense():
            return _reshaped_cells(value, old, new, frame)
        case Truth():

            def region(r: Region) -> Region:
                if isinstance(r, Box) and all(b is None for b in r.bounds[len(frame.loops) :]):
                    return Box(r.rows, r.bounds[: len(frame.loops)] + (None,) * len(new))
                return Cells(_reshape_array(cells_of(r, frame, old), old, new, frame).astype(np.bool_, copy=False))

            may = region(value.may)
            return Truth(may, may if value.exact else region(value.must), value.why)
        case _:
            assert_never(value)


def _reshaped_cells(value: Dense, old: Shape, new: Shape, frame: Frame) -> Dense:
    known = None if value.known is None else np.broadcast_to(value.known, value.data.shape)
    data = _reshape_array(value.data, old, new, frame).astype(np.int64, copy=False)
    sure = None if known is None else _reshape_array(known, old, new, frame).astype(np.bool_, copy=False)
    return Dense(data, sure)


def _reshape_array(data: npt.NDArray[np.generic], old: Shape, new: Shape, frame: Frame) -> npt.NDArray[np.generic]:
    lead = data.shape[: 1 + len(frame.loops)]
    tail = data.shape[1 + len(frame.loops) :]
    if all(n == 1 for n in tail):
        return data.reshape(lead + (1,) * len(new))
    guard_cells(lead + old, frame)
    return np.broadcast_to(data, lead + old).reshape(lead + new)


def _reshaped_coefs(coefs: tuple[Coef, ...], old: Shape, new: Shape) -> tuple[Coef, ...] | None:
    """Coefficients after the reshape, where row-major groups of old and new dimensions line up affinely."""
    if all(is_zero(c) for c in coefs):
        return (0,) * len(new)
    out: list[Coef] = []
    i = j = 0
    while i < len(old) or j < len(new):
        a, b = old[i : i + 1], new[j : j + 1]
        left, right = i + 1, j + 1
        while _product(a) != _product(b):
            if _product(a) < _product(b):
                if left >= len(old):
                    return None
                a, left = (*a, old[left]), left + 1
            else:
                if right >= len(new):
                    return None
                b, right = (*b, new[right]), right + 1
        unit = _flat_step(coefs[i:left], old[i:left])
        if unit is None:
            return None
        step: Coef = unit
        group: list[Coef] = []
        for extent in reversed(b):
            group.append(step if extent > 1 else 0)
            step = step * extent
        out += reversed(group)
        i, j = left, right
    return tuple(out)


def _product(shape: Shape) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


def _flat_step(coefs: tuple[Coef, ...], extents: Shape) -> Coef | None:
    """The step of the flattened dimensions, when they advance as one."""
    step: Coef | None = None
    span = 1
    for coef, extent in zip(reversed(coefs), reversed(extents), strict=True):
        if extent == 1:
            continue
        if step is None:
            step = coef
            if span != 1:
                return None
        elif not np.array_equal(np.asarray(coef), np.asarray(step * span)):
            return None
        span *= extent
    return 0 if step is None else step


# ---- parts -----------------------------------------------------------------------------------------------------------


def first_element(value: Val, shape: Shape, frame: Frame) -> Val:
    """The only element of a tile of one element, as a scalar."""
    loops = len(frame.loops)

    def cells(data: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
        return data.reshape(data.shape[: 1 + loops])

    def box(region: Box) -> Box:
        narrowed = broadcast(Truth(region, region), shape, tuple(2 for _ in shape))
        assert isinstance(narrowed, Truth)
        assert isinstance(narrowed.may, Box)
        return Box(narrowed.may.rows, narrowed.may.bounds[:loops])

    return _rearranged(value, cells, lambda coefs: coefs[:loops], box)


def join(left: Val, right: Val, shape: Shape, frame: Frame) -> Val:
    """Stack two tiles along a new last dimension of 2."""
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return left if isinstance(left, Unknown) else right
    if isinstance(left, Truth) or isinstance(right, Truth):
        assert isinstance(left, Truth)
        assert isinstance(right, Truth)
        may = _stack(cells_of(left.may, frame, shape), cells_of(right.may, frame, shape), frame)
        must = _stack(cells_of(left.must, frame, shape), cells_of(right.must, frame, shape), frame)
        region = Cells(may.astype(np.bool_, copy=False))
        if left.exact and right.exact:
            return Truth(region, region)
        return Truth(region, Cells(must.astype(np.bool_, copy=False)), left.why or right.why)
    if isinstance(left, Affine) and isinstance(right, Affine):
        same = all(np.array_equal(np.asarray(a), np.asarray(b)) for a, b in zip(left.coefs, right.coefs, strict=True))
        if same and left.base.size == right.base.size == 1:
            return Affine(left.base, (*left.coefs, int(right.base[0] - left.base[0])))
    a, b = densify(left, frame, shape), densify(right, frame, shape)
    data = _stack(a.data, b.data, frame).astype(np.int64, copy=False)
    if a.known is None and b.known is None:
        return Dense(data)
    sure = [np.broadcast_to(True if v.known is None else v.known, v.data.shape) for v in (a, b)]
    return Dense(data, _stack(sure[0], sure[1], frame).astype(np.bool_, copy=False))


def _stack(a: npt.NDArray[np.generic], b: npt.NDArray[np.generic], frame: Frame) -> npt.NDArray[np.generic]:
    shape = np.broadcast_shapes(a.shape, b.shape)
    guard_cells((*shape, 2), frame)
    return np.stack([np.broadcast_to(a, shape), np.broadcast_to(b, shape)], axis=-1)


def take_last(value: Val, shape: Shape, position: int, frame: Frame) -> Val:
    """The part of a tile at `position` of its last dimension (of 2)."""
    match value:
        case Unknown():
            return value
        case Affine():
            last = value.coefs[-1]
            return Affine(value.base + np.asarray(last, dtype=np.int64) * position, value.coefs[:-1])
        case Dense():
            known = None if value.known is None else np.broadcast_to(value.known, value.data.shape)
            return Dense(_take(value.data, position), None if known is None else _take(known, position))
        case Truth():
            may = Cells(_take(cells_of(value.may, frame, shape), position))
            return Truth(
                may, may if value.exact else Cells(_take(cells_of(value.must, frame, shape), position)), value.why
            )
        case _:
            assert_never(value)


def _take(data, position: int):  # type: ignore[no-untyped-def]
    return data[..., position if data.shape[-1] > 1 else 0]


# ---- folds -----------------------------------------------------------------------------------------------------------

_UFUNC: dict[str, np.ufunc] = {
    "add": np.add,
    "mul": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def fold(
    value: Dense, loops: int, axis: int, shape: Shape, combine: str, bits: int, *, scan: bool, reverse: bool
) -> Dense | None:
    """A reduction (or scan) of the tile's dimension `axis`; unknown where any element it covers is unknown."""
    at = 1 + loops + axis
    lead = (*value.data.shape[:at], shape[axis], *value.data.shape[at + 1 :])
    data = np.broadcast_to(value.data, lead)
    if combine in ("maxu", "minu"):
        if bits >= 64 and (data < 0).any():
            return None
        data = unsigned_cells(data, bits).astype(np.int64)
    ufunc = _UFUNC.get(combine.removesuffix("u"))
    if ufunc is None:
        return None
    known = None if value.known is None else np.broadcast_to(value.known, lead)
    if not scan:
        out = ufunc.reduce(data, axis=at)
        return Dense(wrap_cells(out, bits), None if known is None else np.asarray(known.all(axis=at), dtype=np.bool_))
    if reverse:
        data, known = np.flip(data, at), None if known is None else np.flip(known, at)
    out = ufunc.accumulate(data, axis=at)
    sure = None if known is None else np.logical_and.accumulate(known, axis=at)
    if reverse:
        out, sure = np.flip(out, at), None if sure is None else np.flip(sure, at)
    return Dense(wrap_cells(out, bits), sure)


def gather(table: Dense, index: Dense, axis: int, source: Shape, shape: Shape, frame: Frame) -> Dense:
    """table[..., index[...], ...] along one array axis; an index out of range gives an unknown element."""
    loops = len(frame.loops)
    lead = np.broadcast_shapes(table.data.shape[: 1 + loops], index.data.shape[: 1 + loops])
    guard_cells(lead + source, frame)
    guard_cells(lead + shape, frame)
    values = np.broadcast_to(table.data, lead + source)
    at = np.broadcast_to(index.data, lead + shape)
    extent = values.shape[axis]
    inside = (at >= 0) & (at < extent)
    safe = np.where(inside, at, 0)
    data: I64 = np.take_along_axis(values, safe, axis=axis)
    if table.known is not None:
        inside = inside & np.take_along_axis(np.broadcast_to(table.known, lead + source), safe, axis=axis)
    if index.known is not None:
        inside = inside & np.broadcast_to(index.known, lead + shape)
    return Dense(data, None if inside.all() else inside)
