"""One handler per operation of the access graph: what it does to launch values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from racefree.graph.program import Combiner, Int, Op, Ptr, Value
from racefree.proof.footprint import tiles
from racefree.proof.footprint.arith import BINARY, add, mul, scaled, truncate, zero_extend
from racefree.proof.footprint.logic import (
    compare,
    compare_truths,
    conjunction,
    disjunction,
    exclusive_or,
    number_of,
    select,
    truth_of,
)
from racefree.proof.footprint.memory import AddressSpace
from racefree.proof.footprint.values import (
    I64,
    Affine,
    Box,
    Cells,
    Dense,
    Frame,
    Number,
    Truth,
    Unknown,
    Val,
    constant,
    densify,
    fits_int64,
    value_range,
    wrap_cells,
)


@dataclass(frozen=True, slots=True)
class Context:
    """What operations read from the launch: the program ids of the rows, the grid, the address space.

    `from_addresses` are the integers (by index) that depend on the address of a pointer.
    """

    pids: tuple[I64, I64, I64]
    grid: tuple[int, int, int]
    space: AddressSpace
    from_addresses: frozenset[int] = frozenset()


Handler = Callable[[Op, list[Val], Context, Frame], tuple[Val, ...]]
HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    def register(handler: Handler) -> Handler:
        for name in names:
            HANDLERS[name] = handler
        return handler

    return register


def _bits(value: Value) -> int:
    return value.element.bits if isinstance(value.element, Int) else 64


def _as_number(what: Val, value: Value, frame: Frame, one: Literal[1, -1] = 1) -> Number:
    return number_of(what, one, frame, value.shape) if isinstance(what, Truth) else what


def _as_truth(what: Val, value: Value, frame: Frame) -> Truth:
    return what if isinstance(what, Truth) else truth_of(what, frame, value.shape)


def _typed(number: Number, result: Value, frame: Frame) -> Val:
    return truth_of(number, frame, result.shape) if result.element == Int(1) else number


# ---- integers --------------------------------------------------------------------------------------------------------

_ON_TRUTHS = {
    "arith.andi": conjunction,
    "arith.muli": conjunction,
    "arith.minui": conjunction,
    "arith.maxsi": conjunction,
    "arith.ori": disjunction,
    "arith.maxui": disjunction,
    "arith.minsi": disjunction,
    "arith.xori": exclusive_or,
    "arith.addi": exclusive_or,
    "arith.subi": exclusive_or,
}


@handles(*BINARY)
def _binary(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    result = op.results[0]
    left, right = op.operands
    if result.element == Int(1):
        on_truths = _ON_TRUTHS.get(op.name)
        if on_truths is None:
            return (Unknown(f"{op.name} on booleans is not computed", op.site),)
        return (on_truths(_as_truth(args[0], left, frame), _as_truth(args[1], right, frame), frame, result.shape),)
    a, b = _as_number(args[0], left, frame), _as_number(args[1], right, frame)
    return (BINARY[op.name](a, b, _bits(result), frame, result.shape),)


@handles("arith.cmpi")
def _cmpi(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    predicate = str(op.attributes["predicate"])
    left, right = op.operands
    shape = op.results[0].shape
    if left.element == Int(1):
        a, b = _as_truth(args[0], left, frame), _as_truth(args[1], right, frame)
        return (compare_truths(predicate, a, b, frame, shape),)
    a_number, b_number = _as_number(args[0], left, frame), _as_number(args[1], right, frame)
    return (compare(predicate, a_number, b_number, _bits(left), frame, shape),)


@handles("arith.select")
def _select(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    condition, left, right = op.operands
    result = op.results[0]
    chosen = _as_truth(args[0], condition, frame)
    if condition.shape != result.shape:
        chosen = tiles.spread_truth(chosen, len(result.shape))
    if result.element == Int(1):
        return (select(chosen, _as_truth(args[1], left, frame), _as_truth(args[2], right, frame), frame, result.shape),)
    return (select(chosen, args[1], args[2], frame, result.shape),)


@handles("arith.extsi", "arith.index_cast")
def _sign_extend(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    number = _as_number(args[0], op.operands[0], frame, -1)
    if _bits(op.results[0]) < _bits(op.operands[0]):
        return (_typed(truncate(number, _bits(op.results[0]), frame, op.results[0].shape), op.results[0], frame),)
    return (number,)


@handles("arith.extui", "arith.index_castui")
def _zero_extend(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    source = op.operands[0]
    number = _as_number(args[0], source, frame)
    return (zero_extend(number, _bits(source), frame, source.shape),)


@handles("arith.trunci")
def _truncate(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    result = op.results[0]
    number = _as_number(args[0], op.operands[0], frame)
    if result.element == Int(1):
        return (truth_of(number, frame, result.shape),)
    return (truncate(number, _bits(result), frame, result.shape),)


@handles("math.absi")
def _absolute(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    number = _as_number(args[0], op.operands[0], frame)
    if isinstance(number, Unknown):
        return (number,)
    cells = densify(number, frame, op.results[0].shape)
    return (Dense(wrap_cells(np.abs(cells.data), _bits(op.results[0])), cells.known),)


# ---- sources ---------------------------------------------------------------------------------------------------------


@handles("arith.constant")
def _constant(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    result = op.results[0]
    value = op.attributes["value"]
    axes = len(frame.loops) + len(result.shape)
    if isinstance(value, tuple):
        cells = np.array(value, dtype=np.int64).reshape((1,) + (1,) * len(frame.loops) + result.shape)
        return (_typed(Dense(cells), result, frame),)
    if value is None or isinstance(value, float | str | Combiner):
        return (Unknown("it is a constant that is no integer", op.site),)
    half = 1 << (_bits(result) - 1)
    signed = (int(value) + half) % (2 * half) - half
    return (_typed(constant(signed, axes), result, frame),)


@handles("ub.poison")
def _poison(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    return (Unknown("it is undefined", op.site),)


@handles("tt.make_range")
def _make_range(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    start = op.attributes["start"]
    assert isinstance(start, int)
    return (Affine(np.array([start], dtype=np.int64), (0,) * len(frame.loops) + (1,)),)


@handles("tt.get_program_id")
def _program_id(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    axis = op.attributes["axis"]
    assert isinstance(axis, int)
    return (Affine(context.pids[axis], (0,) * len(frame.loops)),)


@handles("tt.get_num_programs")
def _num_programs(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    axis = op.attributes["axis"]
    assert isinstance(axis, int)
    return (constant(context.grid[axis], len(frame.loops)),)


# ---- pointers --------------------------------------------------------------------------------------------------------


@handles("tt.addptr")
def _addptr(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    result = op.results[0]
    assert isinstance(result.element, Ptr)
    pointer, offset = args[0], _as_number(args[1], op.operands[1], frame)
    assert not isinstance(pointer, Truth)
    axes = len(frame.loops) + len(result.shape)
    bytes_moved = mul(offset, constant(result.element.pointee_bytes, axes), 64, frame, result.shape)
    if op.operands[1].index not in context.from_addresses or isinstance(pointer, Unknown):
        return (add(pointer, bytes_moved, 64, frame, result.shape),)
    # Such a step may lead from one tensor to another, which only real addresses tell.
    real = _real(pointer, context.space, frame, result.shape)
    return (_virtual(add(real, bytes_moved, 64, frame, result.shape), context.space, frame, result.shape),)


def _real(pointer: Affine | Dense, space: AddressSpace, frame: Frame, shape: tuple[int, ...]) -> Affine | Dense:
    if isinstance(pointer, Affine) and fits_int64(pointer, frame.extents(shape)):
        low, high = (space.home(end) for end in value_range(pointer, frame.extents(shape)))
        if (low == high).all():
            return Affine(space.to_integer(pointer.base), pointer.coefs)
    cells = densify(pointer, frame, shape)
    return Dense(space.to_integer(cells.data), cells.known)


def _virtual(address: Number, space: AddressSpace, frame: Frame, shape: tuple[int, ...]) -> Number:
    match address:
        case Affine() if all(isinstance(c, int) and c == 0 for c in address.coefs):
            return Affine(space.from_integer(address.base), address.coefs)
        case Affine() | Dense():
            cells = densify(address, frame, shape)
            return Dense(space.from_integer(cells.data), cells.known)
        case _:
            return address


@handles("tt.bitcast", "arith.bitcast")
def _same(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    return (args[0],)


@handles("tt.ptr_to_int")
def _ptr_to_int(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    """Integers hold real addresses: they may meet others that were loaded from a table."""
    value = args[0]
    return (_real(value, context.space, frame, op.results[0].shape) if isinstance(value, Affine | Dense) else value,)


@handles("tt.int_to_ptr")
def _int_to_ptr(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    value = args[0]
    assert not isinstance(value, Truth)
    return (_virtual(value, context.space, frame, op.results[0].shape),)


# ---- tiles -----------------------------------------------------------------------------------------------------------


@handles("tt.splat")
def _splat(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    return (tiles.splat(args[0], len(op.results[0].shape)),)


@handles("tt.broadcast")
def _broadcast(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    return (tiles.broadcast(args[0], op.operands[0].shape, op.results[0].shape),)


@handles("tt.expand_dims")
def _expand_dims(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    axis = op.attributes["axis"]
    assert isinstance(axis, int)
    return (tiles.expand(args[0], len(frame.loops) + axis),)


@handles("tt.trans")
def _trans(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    order = op.attributes["order"]
    assert isinstance(order, tuple)
    return (tiles.permute(args[0], len(frame.loops), order),)


@handles("tt.reshape")
def _reshape(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    if op.attributes.get("allow_reorder") and not tiles.same_in_all_lanes(args[0], len(frame.loops)):
        return (Unknown("a reshape may reorder its elements", op.site),)
    return (tiles.reshape(args[0], op.operands[0].shape, op.results[0].shape, frame),)


@handles("tt.unsplat")
def _unsplat(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    return (tiles.first_element(args[0], op.operands[0].shape, frame),)


@handles("tt.join")
def _join(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    return (tiles.join(args[0], args[1], op.operands[0].shape, frame),)


@handles("tt.split")
def _split(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    return tuple(tiles.take_last(args[0], op.operands[0].shape, position, frame) for position in (0, 1))


@handles("tt.gather")
def _gather(op: Op, args: list[Val], context: Context, frame: Frame) -> tuple[Val, ...]:
    axis = op.attributes["axis"]
    source, index = (_as_number(a, o, frame) for a, o in zip(args, op.operands, strict=True))
    if isinstance(source, Unknown) or isinstance(index, Unknown) or not isinstance(axis, int):
        return (source if isinstance(source, Unknown) else index,)
    table, at = densify(source, frame, op.operands[0].shape), densify(index, frame, op.operands[1].shape)
    out = tiles.gather(table, at, len(frame.loops) + 1 + axis, op.operands[0].shape, op.operands[1].shape, frame)
    return (_typed(out, op.results[0], frame),)


__all__ = ["HANDLERS", "Box", "Cells", "Context", "Handler", "scaled"]
