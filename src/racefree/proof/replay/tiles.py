"""Operations that make tiles, move their elements, or read the launch: what is not element-wise arithmetic."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from racefree.graph.program import Op, Ptr
from racefree.proof.replay.lanes import Lanes, constant, gathered, signed, union, unknown

Mover = Callable[[Op, Any], list[Any]]
MOVERS: dict[str, Mover] = {}


def _mover(*names: str) -> Callable[[Mover], Mover]:
    def enter(function: Mover) -> Mover:
        for name in names:
            MOVERS[name] = function
        return function

    return enter


@_mover("tt.splat", "tt.broadcast")
def _broadcast(op: Op, arrays: Any) -> list[Any]:
    return [np.broadcast_to(arrays[0], op.results[0].shape)]


@_mover("tt.expand_dims")
def _expand(op: Op, arrays: Any) -> list[Any]:
    return [np.expand_dims(arrays[0], _int(op, "axis"))]


@_mover("tt.unsplat")
def _unsplat(op: Op, arrays: Any) -> list[Any]:
    return [arrays[0].reshape(())]


@_mover("tt.reshape")
def _reshape(op: Op, arrays: Any) -> list[Any]:
    return [arrays[0].reshape(op.results[0].shape)]


@_mover("tt.trans")
def _transpose(op: Op, arrays: Any) -> list[Any]:
    order = op.attributes["order"]
    assert isinstance(order, tuple)
    return [np.transpose(arrays[0], order)]


@_mover("tt.join")
def _join(op: Op, arrays: Any) -> list[Any]:
    return [np.stack(arrays, axis=-1)]


@_mover("tt.split")
def _split(op: Op, arrays: Any) -> list[Any]:
    return [arrays[0][..., 0], arrays[0][..., 1]]


@_mover("tt.cat")
def _concatenate(op: Op, arrays: Any) -> list[Any]:
    return [np.concatenate(arrays)]


def _int(op: Op, name: str) -> int:
    value = op.attributes[name]
    assert isinstance(value, int)
    return value


def moved(op: Op, operands: Sequence[Lanes]) -> list[Lanes] | None:
    """The results of a data-movement operation, or None when `op` is not one."""
    mover = MOVERS.get(op.name)
    if mover is None:
        return None
    bits = mover(op, [o.bits for o in operands])
    known = mover(op, [o.known for o in operands])
    tracked = all(o.taint is not None for o in operands)
    taints = mover(op, [o.taint for o in operands]) if tracked else [None] * len(bits)
    results = [Lanes(b, k, t) for b, k, t in zip(bits, known, taints, strict=True)]
    return [_any_order(r) for r in results] if _permutes(op) else results


def _permutes(op: Op) -> bool:
    return op.name == "tt.cat" or (op.name == "tt.reshape" and bool(op.attributes.get("allow_reorder", False)))


def _any_order(value: Lanes) -> Lanes:
    """The elements in an order the compiler picks: known only when they are all the same."""
    taint = None if value.taint is None else gathered([value.taint], value.shape)
    if value.known.all() and (value.bits == value.bits.reshape(-1)[0]).all():
        return Lanes(value.bits, value.known, taint)
    return unknown(value.shape, taint)


def made(op: Op, pid: tuple[int, int, int], grid: tuple[int, int, int], *, track: bool) -> Lanes | None:
    """The result of an operation without operands, or None when `op` is not one."""
    result = op.results[0] if op.results else None
    if result is None:
        return None
    match op.name:
        case "arith.constant":
            value = op.attributes.get("value")
            if isinstance(value, int) or (isinstance(value, tuple) and all(isinstance(v, int) for v in value)):
                return constant(value, result, track=track)
            return unknown(result.shape, track=track)
        case "tt.make_range":
            return constant(tuple(range(_int(op, "start"), _int(op, "end"))), result, track=track)
        case "tt.get_program_id":
            return constant(pid[_int(op, "axis")], result, track=track)
        case "tt.get_num_programs":
            return constant(grid[_int(op, "axis")], result, track=track)
        case _:
            return None


def advanced(op: Op, operands: Sequence[Lanes]) -> Lanes:
    """`tt.addptr`: the pointer plus the signed offset times the size of its pointee, modulo 2**64."""
    pointer, offset = operands
    result = op.results[0]
    element = op.operands[0].element
    assert isinstance(element, Ptr)
    bits = getattr(op.operands[1].element, "bits", 64)
    step = np.atleast_1d(signed(offset.bits, bits)).view(np.uint64) * np.uint64(element.pointee_bytes)
    known = np.broadcast_to(pointer.known & offset.known, result.shape)
    pattern = np.where(known, pointer.bits + step, np.uint64(0)).reshape(result.shape)
    taint = None
    if pointer.taint is not None and offset.taint is not None:
        taint = union([pointer.taint, offset.taint], result.shape)
    return Lanes(pattern, known, taint)
