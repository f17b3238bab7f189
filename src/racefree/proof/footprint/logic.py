"""Comparisons, boolean algebra and selection on launch values; every doubt widens the interval [must, may]."""

from __future__ import annotations

from typing import Literal

import numpy as np

from racefree.proof.footprint.arith import blend, sub
from racefree.proof.footprint.values import (
    I64,
    Affine,
    Bits,
    Box,
    Cells,
    Coef,
    Dense,
    Frame,
    Number,
    Region,
    Truth,
    Unknown,
    Val,
    cells_of,
    constant,
    densify,
    everywhere,
    fits_int64,
    guard_cells,
    is_empty,
    is_full,
    is_zero,
    join,
    known,
    maybe,
    meet,
    nowhere,
    outside,
    tidy,
    unsigned_cells,
    value_range,
)

Shape = tuple[int, ...]
_NEGATION = {"ne": "eq", "sge": "slt", "sgt": "sle", "uge": "ult", "ugt": "ule"}
_BASE = {"slt": np.less, "sle": np.less_equal, "ult": np.less, "ule": np.less_equal, "eq": np.equal}


def compare(predicate: str, left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Truth:
    """`arith.cmpi`: signed and unsigned, at `bits`."""
    axes = len(frame.loops) + len(shape)
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return maybe(axes, left if isinstance(left, Unknown) else right)  # type: ignore[arg-type]
    if predicate in _NEGATION:
        return negate(compare(_NEGATION[predicate], left, right, bits, frame, shape), frame, shape)
    if isinstance(left, Affine) and isinstance(right, Affine):
        region = _compare_affine(predicate, left, right, frame, shape)
        if region is not None:
            return known(region)
    a, b = densify(left, frame, shape), densify(right, frame, shape)
    guard_cells(np.broadcast_shapes(a.data.shape, b.data.shape), frame)
    if predicate in ("ult", "ule"):
        holds: Bits = _BASE[predicate](unsigned_cells(a.data, bits), unsigned_cells(b.data, bits))
    else:
        holds = _BASE[predicate](a.data, b.data)
    if a.known is None and b.known is None:
        return known(Cells(holds))
    sure = np.ones((), np.bool_)
    for side in (a, b):
        sure = sure if side.known is None else sure & side.known
    return Truth(Cells(holds | ~sure), Cells(holds & sure), None)


def _compare_affine(predicate: str, left: Affine, right: Affine, frame: Frame, shape: Shape) -> Region | None:
    """The box where left - right < 0 (or <= 0, or == 0), when it depends on one axis at most; None otherwise."""
    extents = frame.extents(shape)
    if not (fits_int64(left, extents) and fits_int64(right, extents)):
        return None
    if predicate in ("ult", "ule") and any((value_range(v, extents)[0] < 0).any() for v in (left, right)):
        return None
    gap = sub(left, right, 64, frame, shape)
    if not isinstance(gap, Affine):
        return None
    low, high = value_range(gap, extents)
    axes = len(extents)
    if predicate == "eq":
        return _equal(gap, low, high, extents)
    limit = 0 if predicate in ("sle", "ule") else -1
    always, never = high <= limit, low > limit
    if (always | never).all():
        return Box(always, (None,) * axes)
    varying = [i for i, c in enumerate(gap.coefs) if not is_zero(c) and extents[i] > 1]
    if len(varying) != 1:
        return None
    axis = varying[0]
    bounds: list[tuple[Coef, Coef] | None] = [None] * axes
    bounds[axis] = _solve(gap.base, gap.coefs[axis], limit, extents[axis])
    if bounds[axis] is None:
        return None
    return Box(np.ones(1, np.bool_), tuple(bounds))


def _solve(base: I64, coef: Coef, limit: int, extent: int) -> tuple[Coef, Coef] | None:
    """The half-open range of k in [0, extent) with base + coef * k <= limit, per row."""
    step = np.asarray(coef, dtype=np.int64)
    if (step > 0).all():
        return 0, tidy(np.clip((limit - base) // step + 1, 0, extent))
    if (step < 0).all():
        return tidy(np.clip(-((limit - base) // -step), 0, extent)), extent
    return None


def _equal(gap: Affine, low: I64, high: I64, extents: tuple[int, ...]) -> Region | None:
    axes = len(extents)
    never = (low > 0) | (high < 0)
    always = (low == 0) & (high == 0)
    if (always | never).all():
        return Box(always, (None,) * axes)
    varying = [i for i, c in enumerate(gap.coefs) if not is_zero(c) and extents[i] > 1]
    if len(varying) != 1:
        return None
    axis = varying[0]
    step = np.asarray(gap.coefs[axis], dtype=np.int64)
    if (step == 0).any():
        return None
    where = -gap.base // step
    hit = (where * step == -gap.base) & (where >= 0) & (where < extents[axis])
    bounds: list[tuple[Coef, Coef] | None] = [None] * axes
    bounds[axis] = (tidy(where), tidy(where + 1))
    return Box(hit, tuple(bounds))


# ---- boolean algebra -------------------------------------------------------------------------------------------------


def conjunction(a: Truth, b: Truth, frame: Frame, shape: Shape) -> Truth:
    may = meet(a.may, b.may, frame, shape)
    if a.exact and b.exact:
        return known(may)
    return _settled(may, meet(a.must, b.must, frame, shape), a.why or b.why, frame, shape)


def _settled(may: Region, must: Region, why: Unknown | None, frame: Frame, shape: Shape) -> Truth:
    """What was not known may not matter: where both bounds have come to agree the truth is exact."""
    if is_empty(may):
        return known(may)
    if isinstance(may, Cells) and isinstance(must, Cells):
        guard_cells(np.broadcast_shapes(may.data.shape, must.data.shape), frame)
        if not (may.data & ~must.data).any():
            return known(may)
    return Truth(may, must, why)


def disjunction(a: Truth, b: Truth, frame: Frame, shape: Shape) -> Truth:
    may = join(a.may, b.may, frame, shape)
    if a.exact and b.exact:
        return known(may)
    return Truth(may, join(a.must, b.must, frame, shape), a.why or b.why)


def negate(a: Truth, frame: Frame, shape: Shape) -> Truth:
    if a.exact:
        return known(outside(a.may, frame, shape))
    return Truth(outside(a.must, frame, shape), outside(a.may, frame, shape), a.why)


def exclusive_or(a: Truth, b: Truth, frame: Frame, shape: Shape) -> Truth:
    for one, other in ((a, b), (b, a)):
        if one.exact and is_full(one.may):
            return negate(other, frame, shape)
        if one.exact and is_empty(one.may):
            return other
    left = conjunction(a, negate(b, frame, shape), frame, shape)
    right = conjunction(b, negate(a, frame, shape), frame, shape)
    return disjunction(left, right, frame, shape)


def compare_truths(predicate: str, a: Truth, b: Truth, frame: Frame, shape: Shape) -> Truth:
    """`arith.cmpi` on i1: true is 1 unsigned and -1 signed."""
    differ = exclusive_or(a, b, frame, shape)
    match predicate:
        case "ne":
            return differ
        case "eq":
            return negate(differ, frame, shape)
        case "ult" | "sgt":
            return conjunction(negate(a, frame, shape), b, frame, shape)
        case "ugt" | "slt":
            return conjunction(a, negate(b, frame, shape), frame, shape)
        case "ule" | "sge":
            return disjunction(negate(a, frame, shape), b, frame, shape)
        case _:
            return disjunction(a, negate(b, frame, shape), frame, shape)


# ---- between booleans and numbers ------------------------------------------------------------------------------------


def number_of(truth: Truth, one: Literal[1, -1], frame: Frame, shape: Shape) -> Affine | Dense:
    """0 or `one` (1 for `extui`, -1 for `extsi`)."""
    axes = len(frame.loops) + len(shape)
    if truth.exact:
        region = truth.may
        if isinstance(region, Box) and not any(region.bounds):
            return Affine(region.rows.astype(np.int64) * one, (0,) * axes)
        return Dense(cells_of(region, frame, shape).astype(np.int64) * one)
    may, must = cells_of(truth.may, frame, shape), cells_of(truth.must, frame, shape)
    guard_cells(np.broadcast_shapes(may.shape, must.shape), frame)
    return Dense((may & must).astype(np.int64) * one, ~(may ^ must))


def truth_of(value: Number, frame: Frame, shape: Shape) -> Truth:
    """The lowest bit of a number (`arith.trunci` to i1, and i1 constants)."""
    if isinstance(value, Unknown):
        return maybe(len(frame.loops) + len(shape), value)
    if isinstance(value, Affine) and all(is_zero(c) for c in value.coefs):
        return known(Box((value.base & 1).astype(np.bool_), (None,) * len(value.coefs)))
    cells = densify(value, frame, shape)
    bit = (cells.data & 1).astype(np.bool_)
    if cells.known is None:
        return known(Cells(bit))
    return Truth(Cells(bit | ~cells.known), Cells(bit & cells.known), None)


# ---- selection -------------------------------------------------------------------------------------------------------


def select(condition: Truth, a: Val, b: Val, frame: Frame, shape: Shape) -> Val:
    """`arith.select` lane by lane (the condition is already of the result's shape)."""
    if a is b:
        return a
    if condition.exact:
        if is_full(condition.may):
            return a
        if is_empty(condition.may):
            return b
    if isinstance(a, Truth) and isinstance(b, Truth):
        chosen = conjunction(condition, a, frame, shape)
        return disjunction(chosen, conjunction(negate(condition, frame, shape), b, frame, shape), frame, shape)
    assert not isinstance(a, Truth)
    assert not isinstance(b, Truth)
    return _select_numbers(condition, a, b, frame, shape)


def _select_numbers(condition: Truth, a: Number, b: Number, frame: Frame, shape: Shape) -> Number:
    region = condition.may
    rows_only = condition.exact and isinstance(region, Box) and not any(region.bounds)
    if rows_only and isinstance(a, Affine) and isinstance(b, Affine):
        assert isinstance(region, Box)
        return blend(region.rows, a, b)
    if isinstance(a, Unknown) and isinstance(b, Unknown):
        return a
    if _same(a, b):
        return a
    if not condition.exact and is_full(condition.may) and is_empty(condition.must):
        return condition.why or _doubt(a, b)
    if isinstance(a, Unknown) or isinstance(b, Unknown):
        a, b = (_nothing(v, frame, shape) if isinstance(v, Unknown) else v for v in (a, b))
    x, y = densify(a, frame, shape), densify(b, frame, shape)
    may, must = cells_of(condition.may, frame, shape), cells_of(condition.must, frame, shape)
    guard_cells(np.broadcast_shapes(x.data.shape, y.data.shape, may.shape, must.shape), frame)
    data = np.where(must, x.data, y.data)
    x_known = np.ones((), np.bool_) if x.known is None else x.known
    y_known = np.ones((), np.bool_) if y.known is None else y.known
    sure = np.where(must, x_known, np.where(~may, y_known, x_known & y_known & (x.data == y.data)))
    return Dense(data, None if sure.all() else np.broadcast_to(sure, np.broadcast_shapes(sure.shape, data.shape)))


def _same(a: Number, b: Number) -> bool:
    if isinstance(a, Affine) and isinstance(b, Affine):
        return np.array_equal(a.base, b.base) and all(
            np.array_equal(np.asarray(x), np.asarray(y)) for x, y in zip(a.coefs, b.coefs, strict=True)
        )
    return False


def _doubt(a: Number, b: Number) -> Unknown:
    for side in (a, b):
        if isinstance(side, Unknown):
            return side
    from racefree.access import Site

    return Unknown("it is selected by a condition that is not known", Site("", 0))


def _nothing(_: Unknown, frame: Frame, shape: Shape) -> Dense:
    axes = len(frame.loops) + len(shape)
    zero = densify(constant(0, axes), frame, shape)
    return Dense(zero.data, np.zeros_like(zero.data, dtype=np.bool_))


def full_truth(axes: int, *, holds: bool) -> Truth:
    return known(everywhere(axes) if holds else nowhere(axes))
