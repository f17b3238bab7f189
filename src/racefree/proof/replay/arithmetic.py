"""Integer operations of MLIR on bit patterns, element for element, at their real widths."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from racefree.graph.program import Attribute, Op
from racefree.proof.replay.lanes import Bits, Known, Lanes, element_bits, ones, signed, union


@dataclass(frozen=True, slots=True)
class Context:
    """What an element-wise rule sees beside its operands: widths in bits, and the operation's attributes."""

    operand_bits: tuple[int, ...]
    result_bits: tuple[int, ...]
    attributes: Mapping[str, Attribute]


Answer = tuple[Bits, Known | bool]
"""Result patterns (wrapped to the result width by the caller) and where they are defined, given known operands."""

Rule = Callable[[Context, Sequence[Bits]], Answer]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return enter


@rule("arith.addi")
def _add(c: Context, x: Sequence[Bits]) -> Answer:
    return x[0] + x[1], True


@rule("arith.subi")
def _sub(c: Context, x: Sequence[Bits]) -> Answer:
    return x[0] - x[1], True


@rule("arith.muli")
def _mul(c: Context, x: Sequence[Bits]) -> Answer:
    return x[0] * x[1], True


@rule("arith.andi")
def _and(c: Context, x: Sequence[Bits]) -> Answer:
    return x[0] & x[1], True


@rule("arith.ori")
def _or(c: Context, x: Sequence[Bits]) -> Answer:
    return x[0] | x[1], True


@rule("arith.xori")
def _xor(c: Context, x: Sequence[Bits]) -> Answer:
    return x[0] ^ x[1], True


def _in_width(c: Context, amount: Bits) -> tuple[Bits, Known]:
    """A shift by the width or more is poison."""
    fine = amount < np.uint64(c.operand_bits[0])
    return np.where(fine, amount, np.uint64(0)), fine


@rule("arith.shli")
def _shl(c: Context, x: Sequence[Bits]) -> Answer:
    amount, fine = _in_width(c, x[1])
    return np.left_shift(x[0], amount), fine


@rule("arith.shrui")
def _shru(c: Context, x: Sequence[Bits]) -> Answer:
    amount, fine = _in_width(c, x[1])
    return np.right_shift(x[0], amount), fine


@rule("arith.shrsi")
def _shrs(c: Context, x: Sequence[Bits]) -> Answer:
    amount, fine = _in_width(c, x[1])
    return np.asarray(signed(x[0], c.operand_bits[0]) >> amount.astype(np.int64)).view(np.uint64), fine


def _magnitude(x: Bits, bits: int) -> tuple[Bits, Known]:
    negative = np.asarray(signed(x, bits) < 0)
    return np.where(negative, (np.uint64(0) - x) & ones(bits), x), negative


def _nonzero(x: Bits) -> tuple[Bits, Known]:
    fine = x != 0
    return np.where(fine, x, np.uint64(1)), fine


@rule("arith.divui")
def _divu(c: Context, x: Sequence[Bits]) -> Answer:
    divisor, fine = _nonzero(x[1])
    return x[0] // divisor, fine


@rule("arith.remui")
def _remu(c: Context, x: Sequence[Bits]) -> Answer:
    divisor, fine = _nonzero(x[1])
    return x[0] % divisor, fine


def _fits(c: Context, x: Sequence[Bits]) -> Known:
    """The smallest integer divided by -1 overflows, which is undefined."""
    bits = c.operand_bits[0]
    return np.asarray(~((x[0] == np.uint64(1 << (bits - 1))) & (x[1] == ones(bits)) & (bits > 1)))


@rule("arith.divsi")
def _divs(c: Context, x: Sequence[Bits]) -> Answer:
    bits = c.operand_bits[0]
    divisor, fine = _nonzero(x[1])
    left, left_negative = _magnitude(x[0], bits)
    right, right_negative = _magnitude(divisor, bits)
    quotient = left // right
    return np.where(left_negative != right_negative, np.uint64(0) - quotient, quotient), fine & _fits(c, x)


@rule("arith.remsi")
def _rems(c: Context, x: Sequence[Bits]) -> Answer:
    bits = c.operand_bits[0]
    divisor, fine = _nonzero(x[1])
    left, negative = _magnitude(x[0], bits)
    right, _ = _magnitude(divisor, bits)
    rest = left % right
    return np.where(negative, np.uint64(0) - rest, rest), fine & _fits(c, x)


def _rounded(c: Context, x: Sequence[Bits], *, up: bool, sign: bool) -> Answer:
    """Division rounding up or down; `_divs` and `_divu` truncate, so correct by one where a remainder is left."""
    quotient, fine = (_divs if sign else _divu)(c, x)
    rest, _ = (_rems if sign else _remu)(c, x)
    bits = c.operand_bits[0]
    same = np.asarray((signed(x[0], bits) < 0) == (signed(x[1], bits) < 0)) if sign else np.asarray(True)
    adjust = (rest & ones(bits) != 0) & (same if up else ~same)
    step = np.uint64(1) if up else ones(64)
    return np.where(adjust, quotient + step, quotient), fine


@rule("arith.ceildivsi")
def _ceils(c: Context, x: Sequence[Bits]) -> Answer:
    return _rounded(c, x, up=True, sign=True)


@rule("arith.ceildivui")
def _ceilu(c: Context, x: Sequence[Bits]) -> Answer:
    return _rounded(c, x, up=True, sign=False)


@rule("arith.floordivsi")
def _floors(c: Context, x: Sequence[Bits]) -> Answer:
    return _rounded(c, x, up=False, sign=True)


@rule("arith.minui")
def _minu(c: Context, x: Sequence[Bits]) -> Answer:
    return np.minimum(x[0], x[1]), True


@rule("arith.maxui")
def _maxu(c: Context, x: Sequence[Bits]) -> Answer:
    return np.maximum(x[0], x[1]), True


@rule("arith.minsi")
def _mins(c: Context, x: Sequence[Bits]) -> Answer:
    bits = c.operand_bits[0]
    return np.where(signed(x[0], bits) <= signed(x[1], bits), x[0], x[1]), True


@rule("arith.maxsi")
def _maxs(c: Context, x: Sequence[Bits]) -> Answer:
    bits = c.operand_bits[0]
    return np.where(signed(x[0], bits) >= signed(x[1], bits), x[0], x[1]), True


@rule("math.absi")
def _abs(c: Context, x: Sequence[Bits]) -> Answer:
    return _magnitude(x[0], c.operand_bits[0])[0], True


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
}


@rule("arith.cmpi")
def _compare(c: Context, x: Sequence[Bits]) -> Answer:
    predicate = str(c.attributes["predicate"])
    if predicate in ("eq", "ne") or predicate.startswith("u"):
        left, right = x[0], x[1]
        result = _COMPARE[predicate.removeprefix("u")](left, right)
    else:
        bits = c.operand_bits[0]
        result = _COMPARE[predicate.removeprefix("s")](signed(x[0], bits), signed(x[1], bits))
    return np.asarray(result).astype(np.uint64), True


@rule("arith.extsi", "arith.index_cast")
def _sign_extend(c: Context, x: Sequence[Bits]) -> Answer:
    return np.asarray(signed(x[0], c.operand_bits[0])).view(np.uint64), True


@rule("arith.extui", "arith.index_castui", "arith.trunci", "arith.bitcast")
@rule("tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr")
def _same_pattern(c: Context, x: Sequence[Bits]) -> Answer:
    return x[0].copy(), True


def _wide(function: Callable[[int, int], int]) -> Callable[[Bits, Bits], Bits]:
    return lambda a, b: np.asarray(np.frompyfunc(function, 2, 1)(a, b)).astype(np.uint64)


@rule("tt.mulhiui")
def _mulhi(c: Context, x: Sequence[Bits]) -> Answer:
    bits = c.operand_bits[0]
    return _wide(lambda a, b: (int(a) * int(b)) >> bits)(x[0], x[1]), True


def _counted(function: Callable[[int, int], int]) -> Rule:
    def count(c: Context, x: Sequence[Bits]) -> Answer:
        bits = c.operand_bits[0]
        return np.asarray(np.frompyfunc(lambda a: function(int(a), bits), 1, 1)(x[0])).astype(np.uint64), True

    return count


RULES["math.ctpop"] = _counted(lambda a, bits: a.bit_count())
RULES["math.ctlz"] = _counted(lambda a, bits: bits - a.bit_length())
RULES["math.cttz"] = _counted(lambda a, bits: (a & -a).bit_length() - 1 if a else bits)


def _absorbing(op: Op) -> int | None:
    """The operand pattern that fixes the result whatever the other operand is."""
    match op.name:
        case "arith.andi" | "arith.muli":
            return 0
        case "arith.ori":
            return int(ones(element_bits(op.results[0].element)))
        case _:
            return None


def elementwise(op: Op, operands: Sequence[Lanes]) -> Lanes | None:
    """The single result of an element-wise integer operation, or None when `op` is not one this module computes."""
    if op.name == "arith.select":
        return _select(op, operands)
    function = RULES.get(op.name)
    if function is None or len(op.results) != 1:
        return None
    context = Context(
        tuple(element_bits(v.element) for v in op.operands),
        tuple(element_bits(v.element) for v in op.results),
        op.attributes,
    )
    if not all(1 <= bits <= 64 for bits in context.operand_bits + context.result_bits):
        return None
    shape = op.results[0].shape
    # NumPy warns when a bare scalar wraps, never when an array does
    pattern, defined = function(context, [np.atleast_1d(o.bits) for o in operands])
    known = np.atleast_1d(np.logical_and.reduce([np.broadcast_to(o.known, shape) for o in operands])) & defined
    pattern = np.asarray(pattern) & ones(context.result_bits[0])
    fixed = _absorbing(op)
    if fixed is not None:
        for operand in operands:
            hit = operand.known & (operand.bits == np.uint64(fixed))
            pattern, known = np.where(hit, np.uint64(fixed), pattern), known | hit
    return _made(pattern, known, operands, shape)


def _select(op: Op, operands: Sequence[Lanes]) -> Lanes:
    condition, then, other = operands
    shape = op.results[0].shape
    chosen = np.broadcast_to(condition.bits != 0, shape)
    pattern = np.where(chosen, then.bits, other.bits)
    known = np.where(chosen, then.known, other.known)
    agree = then.known & other.known & (then.bits == other.bits)
    known = np.where(np.broadcast_to(condition.known, shape), known, agree)
    return _made(pattern, np.asarray(known), operands, shape)


def _made(pattern: Bits, known: Known, operands: Sequence[Lanes], shape: tuple[int, ...]) -> Lanes:
    known = np.asarray(known, dtype=np.bool_).reshape(shape)
    taints = [o.taint for o in operands if o.taint is not None]
    taint = union(taints, shape) if len(taints) == len(operands) else None
    return Lanes(np.where(known, pattern, np.uint64(0)).reshape(shape), known, taint)
