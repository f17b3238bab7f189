"""Reductions and scans with a combiner of several operations: one element after the other along the axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from racefree.graph.program import Combiner, Op, Value
from racefree.proof.replay.arithmetic import elementwise
from racefree.proof.replay.lanes import Lanes, unknown
from racefree.proof.replay.tiles import made

Slices = list[Lanes]
"""One position of the axis: a tile of the other dimensions per operand."""

MOST_SWAPS = 1 << 20
"""So many times two elements of a reduction are joined in both orders."""


def combined(op: Op, operands: Sequence[Lanes]) -> list[tuple[Any, Any]] | None:
    """Patterns and known elements of each result; a reduction whose order matters is unknown."""
    combiner, axis = op.attributes.get("combine"), op.attributes.get("axis")
    if not isinstance(combiner, Combiner) or not isinstance(axis, int):
        return None
    shape = operands[0].shape[:axis] + operands[0].shape[axis + 1 :]
    spread = _spread(combiner, shape)
    slices = [_slice(operands, axis, at) for at in range(operands[0].shape[axis])]
    if op.name == "tt.reduce":
        whole = _running(spread, slices)[-1]
        sure = _whatever_the_order(combiner, slices, whole)
        return [(each.bits, sure) for each in whole]
    turned = bool(op.attributes.get("reverse"))
    running = _running(spread, slices[::-1] if turned else slices)
    if turned:
        running.reverse()
    return [
        (np.stack([r[i].bits for r in running], axis), np.stack([r[i].known for r in running], axis))
        for i in range(len(operands))
    ]


def _slice(operands: Sequence[Lanes], axis: int, at: int) -> Slices:
    return [Lanes(np.asarray(o.bits.take(at, axis)), np.asarray(o.known.take(at, axis))) for o in operands]


def _running(combiner: Combiner, slices: Sequence[Slices]) -> list[Slices]:
    out = [slices[0]]
    for each in slices[1:]:
        out.append(_joined(combiner, out[-1], each))
    return out


def _whatever_the_order(combiner: Combiner, slices: Sequence[Slices], whole: Slices) -> Any:
    """Where the elements make `whole` in any order: where one of them is that and stays so, or each two may change places.

    The combiner is taken to be associative, as Triton asks for.
    """
    extent, shape = len(slices), whole[0].shape
    spread = _spread(combiner, (extent, *shape))
    each = [_stacked([s[place] for s in slices]) for place in range(len(whole))]
    wide = [_stacked([w] * extent) for w in whole]
    stays = _same(_joined(spread, wide, each), wide) & _same(_joined(spread, each, wide), wide)
    sure = stays.all(axis=0) & _same(each, wide).any(axis=0)
    if sure.all() or extent * each[0].bits.size > MOST_SWAPS:
        return sure
    swaps = _same(each, each).all(axis=0)
    for shift in range(1, extent // 2 + 1):
        other = [Lanes(np.roll(e.bits, shift, axis=0), np.roll(e.known, shift, axis=0)) for e in each]
        swaps = swaps & _same(_joined(spread, each, other), _joined(spread, other, each)).all(axis=0)
    return sure | swaps


def _stacked(slices: Sequence[Lanes]) -> Lanes:
    return Lanes(np.stack([s.bits for s in slices]), np.stack([s.known for s in slices]))


def _same(left: Slices, right: Slices) -> Any:
    """Which elements are known to be equal."""
    same = np.ones(left[0].shape, dtype=np.bool_)
    for a, b in zip(left, right, strict=True):
        same = same & a.known & b.known & (a.bits == b.bits)
    return same


def _joined(combiner: Combiner, left: Slices, right: Slices) -> Slices:
    values = {a.index: v for a, v in zip(combiner.arguments, left + right, strict=True)}
    for step in combiner.body:
        result = step.results[0]
        if step.operands:
            found = elementwise(step, [values[o.index] for o in step.operands])
        else:
            found = made(step, (0, 0, 0), (1, 1, 1), track=False)
        values[result.index] = unknown(result.shape) if found is None or len(step.results) > 1 else found
    return [values.get(r.index, unknown(r.shape)) for r in combiner.results]


def _spread(combiner: Combiner, shape: tuple[int, ...]) -> Combiner:
    """The same combiner on tiles of `shape`."""

    def wide(values: tuple[Value, ...]) -> tuple[Value, ...]:
        return tuple(replace(v, shape=shape) for v in values)

    body = tuple(replace(s, results=wide(s.results), operands=wide(s.operands)) for s in combiner.body)
    return Combiner(wide(combiner.arguments), body, wide(combiner.results))
