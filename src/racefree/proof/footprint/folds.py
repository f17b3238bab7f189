"""Operations that put elements together along an axis: reductions, scans and histograms of known integers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from racefree.graph.program import Combiner, Int, Op, Value
from racefree.proof.footprint import tiles
from racefree.proof.footprint.logic import number_of, truth_of
from racefree.proof.footprint.ops import HANDLERS, Context, handles
from racefree.proof.footprint.values import (
    I64,
    Affine,
    Bits,
    Dense,
    Frame,
    Number,
    Truth,
    Unknown,
    Val,
    densify,
    guard_cells,
)

Group = tuple[Dense, ...]
"""One array per operand, the axis in front, the rest flat; `known` is never None."""

MOST_SWAPS = 1 << 24
"""So many times two elements of a reduction are joined in both orders."""


def apply(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    """The results of an operation; unknown where it is not computed here."""
    handler = HANDLERS.get(op.name)
    if handler is None:
        return tuple(Unknown(f"it comes from {op.name}, which is not computed here", op.site) for _ in op.results)
    return handler(op, args, context, frame)


@handles("tt.reduce", "tt.scan")
def _fold(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    combine, axis = op.attributes.get("combine"), op.attributes["axis"]
    source = op.operands[0]
    numbers = [_number(a, v, frame) for a, v in zip(args, op.operands, strict=True)]
    unknown = next((n for n in numbers if isinstance(n, Unknown)), None)
    if unknown is not None:
        return (unknown,) * len(op.results)
    assert isinstance(axis, int)
    cells = [
        densify(n, frame, v.shape) for n, v in zip(numbers, op.operands, strict=True) if not isinstance(n, Unknown)
    ]
    scan, reverse = op.name == "tt.scan", bool(op.attributes.get("reverse"))
    out: tuple[Dense | None, ...]
    if isinstance(combine, Combiner):
        out = _general(op, combine, cells, len(frame.loops) + 1 + axis, context, frame, scan=scan, reverse=reverse)
    else:
        bits = source.element.bits if isinstance(source.element, Int) else 64
        loops = len(frame.loops)
        out = (tiles.fold(cells[0], loops, axis, source.shape, str(combine), bits, scan=scan, reverse=reverse),)
    why = Unknown(f"it comes from a {op.name} whose combination is not computed", op.site)
    return tuple(why if o is None else _typed(o, r, frame) for o, r in zip(out, op.results, strict=True))


def _number(what: Val, value: Value, frame: Frame) -> Number:
    return number_of(what, -1, frame, value.shape) if isinstance(what, Truth) else what


def _typed(number: Dense, result: Value, frame: Frame) -> Val:
    return truth_of(number, frame, result.shape) if result.element == Int(1) else number


# ---- any combiner ----------------------------------------------------------------------------------------------------


def _general(
    op: Op,
    combiner: Combiner,
    cells: list[Dense],
    at: int,
    context: Context,
    frame: Frame,
    *,
    scan: bool,
    reverse: bool,
) -> tuple[Dense, ...]:
    """Joins neighbours in as many rounds as the axis has bits; a reduction that depends on the order of elements is unknown."""
    shape = np.broadcast_shapes(*(c.data.shape for c in cells))
    extent = op.operands[0].shape[at - 1 - len(frame.loops)]
    lead = (*shape[:at], extent, *shape[at + 1 :])
    guard_cells(lead, frame)
    group = tuple(_along(c, at, lead) for c in cells)
    rest = lead[:at] + lead[at + 1 :]
    if scan:
        joined = _scanned(combiner, group, context, reverse=reverse)
        return tuple(_back(c, at, rest) for c in joined)
    whole = group
    while len(whole[0].data) > 1:
        whole = _joined(combiner, _part(whole, slice(0, None, 2)), _part(whole, slice(1, None, 2)), context)
    sure = _whatever_the_order(combiner, group, whole, context)
    known = None if sure.all() else sure.reshape(rest)
    return tuple(Dense(c.data.reshape(rest), known) for c in whole)


def _whatever_the_order(combiner: Combiner, group: Group, whole: Group, context: Context) -> Bits:
    """For which lines an associative combiner makes `whole` of the elements in any order, as the device may join them.

    There one of them is the whole, and stays so next to each; or each two of them may change places.
    """
    extent, lines = group[0].data.shape
    wide = _each(whole, lambda array: np.broadcast_to(array, (extent, lines)))
    stays = _same(_joined(combiner, wide, group, context), wide) & _same(_joined(combiner, group, wide, context), wide)
    out: Bits = np.asarray(stays.all(axis=0) & _same(group, wide).any(axis=0), dtype=np.bool_)
    left = np.flatnonzero(~out)
    if not len(left) or extent * extent * len(left) > MOST_SWAPS:
        return out
    part = _each(group, lambda array: array[:, left])
    swaps = _same(part, part).all(axis=0)
    for shift in range(1, extent // 2 + 1):
        other = _each(part, partial(np.roll, shift=shift, axis=0))
        swaps &= _same(_joined(combiner, part, other, context), _joined(combiner, other, part, context)).all(axis=0)
    out[left] = swaps
    return out


def _same(left: Group, right: Group) -> Bits:
    """Which cells are known to be equal."""
    same: Bits = np.ones(left[0].data.shape, np.bool_)
    for a, b in zip(left, right, strict=True):
        assert a.known is not None
        assert b.known is not None
        same &= a.known & b.known & (a.data == b.data)
    return same


def _along(cells: Dense, at: int, lead: tuple[int, ...]) -> Dense:
    known: Bits = np.ones(cells.data.shape, np.bool_) if cells.known is None else cells.known
    data: I64 = np.moveaxis(np.broadcast_to(cells.data, lead), at, 0).reshape(lead[at], -1)
    sure: Bits = np.moveaxis(np.broadcast_to(known, lead), at, 0).reshape(lead[at], -1)
    return Dense(data, sure)


def _back(cells: Dense, at: int, rest: tuple[int, ...]) -> Dense:
    assert cells.known is not None
    data: I64 = np.moveaxis(cells.data.reshape(len(cells.data), *rest), 0, at)
    known: Bits = np.moveaxis(cells.known.reshape(len(cells.known), *rest), 0, at)
    return Dense(data, known)


def _part(group: Group, which: slice) -> Group:
    return _each(group, lambda array: array[which])


def _each(group: Group, change: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]) -> Group:
    return tuple(Dense(change(c.data), None if c.known is None else change(c.known)) for c in group)


def _scanned(combiner: Combiner, group: Group, context: Context, *, reverse: bool) -> Group:
    turned = _part(group, slice(None, None, -1)) if reverse else group
    step = 1
    while step < len(turned[0].data):
        later = _joined(combiner, _part(turned, slice(0, -step)), _part(turned, slice(step, None)), context)
        turned = tuple(_after(head, tail, step) for head, tail in zip(turned, later, strict=True))
        step *= 2
    return _part(turned, slice(None, None, -1)) if reverse else turned


def _after(head: Dense, tail: Dense, step: int) -> Dense:
    assert head.known is not None
    assert tail.known is not None
    return Dense(np.concatenate([head.data[:step], tail.data]), np.concatenate([head.known[:step], tail.known]))


def _joined(combiner: Combiner, left: Group, right: Group, context: Context) -> Group:
    """The combiner on two groups, cell for cell: every cell is a row of its own."""
    shape = left[0].data.shape
    rows = left[0].data.size
    frame = Frame(rows, (), rows)
    values: dict[int, Val] = {}
    for argument, cells in zip(combiner.arguments, left + right, strict=True):
        known = None if cells.known is None or cells.known.all() else cells.known.reshape(-1)
        flat = Dense(cells.data.reshape(-1), known)
        values[argument.index] = _typed(flat, argument, frame)
    for step in combiner.body:
        results = apply(step, [values[o.index] for o in step.operands], context, frame)
        for result, what in zip(step.results, results, strict=True):
            values[result.index] = what
    return tuple(_flat(values[r.index], r, frame, shape) for r in combiner.results)


def _flat(what: Val, value: Value, frame: Frame, shape: tuple[int, ...]) -> Dense:
    number = _number(what, value, frame)
    if isinstance(number, Unknown):
        return Dense(np.zeros(shape, np.int64), np.zeros(shape, np.bool_))
    cells = densify(number, frame, ()) if isinstance(number, Affine) else number
    known: Bits = np.ones(cells.data.shape, np.bool_) if cells.known is None else cells.known
    data: I64 = np.broadcast_to(cells.data, (frame.rows,)).reshape(shape)
    sure: Bits = np.broadcast_to(known, (frame.rows,)).reshape(shape)
    return Dense(data, sure)


# ---- histograms ------------------------------------------------------------------------------------------------------


@handles("tt.histogram")
def _histogram(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    """How often each bin occurs; an element outside the bins, or one that is not known, leaves all of them unknown."""
    source, (bins,) = op.operands[0], op.results[0].shape
    number = _number(args[0], source, frame)
    if isinstance(number, Unknown):
        return (number,)
    parts = [densify(number, frame, source.shape)]
    if len(args) > 1:
        counted = number_of(args[1], 1, frame, source.shape) if isinstance(args[1], Truth) else args[1]
        if isinstance(counted, Unknown):
            return (counted,)
        parts.append(densify(counted, frame, source.shape))
    shape = (*np.broadcast_shapes(*(p.data.shape for p in parts))[:-1], source.shape[0])
    guard_cells((*shape[:-1], max(bins, source.shape[0])), frame)
    data = np.broadcast_to(parts[0].data, shape)
    use = np.broadcast_to(parts[1].data, shape) != 0 if len(parts) > 1 else np.ones(shape, np.bool_)
    sure = np.ones(shape, np.bool_)
    for part, needed in zip(parts, (use, np.ones(shape, np.bool_)), strict=False):
        if part.known is not None:
            sure = sure & (np.broadcast_to(part.known, shape) | ~needed)
    inside = (data >= 0) & (data < bins)
    known = (sure & (inside | ~use)).all(axis=-1, keepdims=True)
    lines = int(np.prod(shape[:-1]))
    place = np.where(inside & use, data, bins) + np.arange(lines).reshape(*shape[:-1], 1) * (bins + 1)
    counts = np.bincount(place.reshape(-1), minlength=lines * (bins + 1)).reshape(*shape[:-1], bins + 1)[..., :bins]
    return (Dense(counts.astype(np.int64), None if known.all() else np.broadcast_to(known, counts.shape)),)
