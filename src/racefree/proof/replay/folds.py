"""Operations that combine elements along an axis (reductions, scans, gathers), and arithmetic with two results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from racefree.graph.program import Combiner, Data, Op
from racefree.proof.replay.arithmetic import RULES, Context
from racefree.proof.replay.combining import combined
from racefree.proof.replay.lanes import Lanes, Taint, along, element_bits, objects, ones, signed_int, union

_COMBINE = {
    "add": "arith.addi",
    "mul": "arith.muli",
    "and": "arith.andi",
    "or": "arith.ori",
    "xor": "arith.xori",
    "max": "arith.maxsi",
    "min": "arith.minsi",
    "maxu": "arith.maxui",
    "minu": "arith.minui",
}


def folded(op: Op, operands: Sequence[Lanes], taint: Callable[[Op], list[Taint] | None]) -> list[Lanes] | None:
    """The results of `op`, or None when it is not one of these. `taint` says what mixed lanes depend on."""
    made: list[tuple[Any, Any]] | None
    match op.name:
        case "tt.reduce" | "tt.scan" if isinstance(op.attributes.get("combine"), Combiner):
            made = combined(op, operands)
        case "tt.reduce" | "tt.scan":
            made = _listed(_fold(op, operands[0]))
        case "tt.gather":
            made = _listed(_gather(op, operands[0], operands[1]))
        case "tt.histogram":
            made = [_counted(op, operands)]
        case name if name in _TWO_RESULTS:
            return _two(op, operands, taint(op))
        case _:
            return None
    if made is None:
        return None
    found = taint(op)
    results = []
    for place, (result, (bits, known)) in enumerate(zip(op.results, made, strict=True)):
        pattern = np.where(known, bits, np.uint64(0)).reshape(result.shape)
        results.append(Lanes(pattern, np.asarray(known).reshape(result.shape), None if found is None else found[place]))
    return results


def _listed(made: tuple[Any, Any] | None) -> list[tuple[Any, Any]] | None:
    return None if made is None else [made]


def _counted(op: Op, operands: Sequence[Lanes]) -> tuple[Any, Any]:
    """A count per bin, unless an element that counts is unknown or outside the bins."""
    bins = op.results[0].shape[0]
    counts, certain = np.zeros(bins, dtype=np.uint64), True
    for at in range(operands[0].bits.size):
        if len(operands) > 1:
            if not operands[1].known[at]:
                certain = False
                continue
            if not operands[1].bits[at]:
                continue
        value = int(operands[0].bits[at])
        if operands[0].known[at] and value < bins:
            counts[value] += np.uint64(1)
        else:
            certain = False
    return counts, np.full(bins, certain)


def line_taint(data: Data, operands: Sequence[Lanes]) -> Taint | None:
    """What each result of a reduction or a product of matrices depends on: its own lines. None where lines are not known."""
    taints = [o.taint for o in operands if o.taint is not None]
    if len(taints) < len(operands):
        return None
    old, new = data.operands[0].shape, data.results[0].shape
    if data.name == "tt.reduce" and len(old) == len(new) + 1:
        axes = [axis for axis in range(len(old)) if old[:axis] + old[axis + 1 :] == new]
        return along(union(taints, old), axes[0], new, False) if len(axes) == 1 else None
    if data.name == "tt.dot" and len(old) == 2:
        left, right, start = taints
        rows = np.bitwise_or.reduce(left, axis=1)[:, None]
        columns = np.bitwise_or.reduce(right, axis=0)[None, :]
        return objects(rows | columns | start, new)
    return None


def _fold(op: Op, value: Lanes) -> tuple[Any, Any] | None:
    """Running results along the axis; a reduction keeps the last one."""
    rule = RULES.get(_COMBINE.get(str(op.attributes.get("combine")), ""))
    axis, bits = op.attributes.get("axis"), element_bits(op.operands[0].element)
    if rule is None or not isinstance(axis, int) or not 1 <= bits <= 64:
        return None
    patterns, known = np.moveaxis(value.bits, axis, 0), np.moveaxis(value.known, axis, 0)
    if op.attributes.get("reverse"):
        patterns, known = patterns[::-1], known[::-1]
    context = Context((bits, bits), (bits,), {})
    running = [np.atleast_1d(patterns[0])]
    for each in patterns[1:]:
        running.append(np.asarray(rule(context, [running[-1], np.atleast_1d(each)])[0]) & ones(bits))
    sure = np.logical_and.accumulate(known, axis=0)
    if op.name == "tt.reduce":
        return running[-1].reshape(known.shape[1:]), sure[-1]
    stacked = np.stack(running).reshape(known.shape)
    if op.attributes.get("reverse"):
        stacked, sure = stacked[::-1], sure[::-1]
    return np.moveaxis(stacked, 0, axis), np.moveaxis(sure, 0, axis)


def _gather(op: Op, source: Lanes, index: Lanes) -> tuple[Any, Any] | None:
    axis = op.attributes.get("axis")
    if not isinstance(axis, int):
        return None
    fine = index.known & (index.bits < np.uint64(source.shape[axis]))
    at = np.where(fine, index.bits, np.uint64(0)).astype(np.int64)
    taken = np.take_along_axis(source.bits, at, axis)
    return taken, fine & np.take_along_axis(source.known, at, axis)


def _add_extended(a: int, b: int, bits: int) -> tuple[int, int]:
    return a + b, (a + b) >> bits


def _sub_extended(a: int, b: int, bits: int) -> tuple[int, int]:
    return a - b, int(a < b)


def _unsigned_product(a: int, b: int, bits: int) -> tuple[int, int]:
    return a * b, (a * b) >> bits


def _signed_product(a: int, b: int, bits: int) -> tuple[int, int]:
    product = signed_int(a, bits) * signed_int(b, bits)
    return product, product >> bits


_TWO_RESULTS: dict[str, Callable[[int, int, int], tuple[int, int]]] = {
    "arith.addui_extended": _add_extended,
    "arith.subui_extended": _sub_extended,
    "arith.mului_extended": _unsigned_product,
    "arith.mulsi_extended": _signed_product,
}


def _two(op: Op, operands: Sequence[Lanes], taints: list[Taint] | None) -> list[Lanes]:
    function, bits = _TWO_RESULTS[op.name], element_bits(op.operands[0].element)
    known = operands[0].known & operands[1].known
    results = []
    for place, result in enumerate(op.results):
        top = int(ones(element_bits(result.element)))
        pattern = np.zeros(result.shape, dtype=np.uint64)
        for at in np.ndindex(result.shape):
            left, right = int(operands[0].bits[at]), int(operands[1].bits[at])
            pattern[at] = function(left, right, bits)[place] & top
        pattern = np.where(known, pattern, np.uint64(0)).reshape(result.shape)
        results.append(Lanes(pattern, known, None if taints is None else taints[place]))
    return results
