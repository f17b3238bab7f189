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


def combined(op: Op, operands: Sequence[Lanes]) -> list[tuple[Any, Any]] | None:
    """Patterns and known elements of each result; a reduction whose order matters is unknown."""
    combiner, axis = op.attributes.get("combine"), op.attributes.get("axis")
    if not isinstance(combiner, Combiner) or not isinstance(axis, int):
        return None
    shape = operands[0].shape[:axis] + operands[0].shape[axis + 1 :]
    spread = _spread(combiner, shape)
    slices = [_slice(operands, axis, at) for at in range(operands[0].shape[axis])]
    if op.name == "tt.reduce":
        forward, backward = _running(spread, slices)[-1], _running(spread, slices[::-1])[-1]
        return [(a.bits, a.known & b.known & (a.bits == b.bits)) for a, b in zip(forward, backward, strict=True)]
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
