"""The operations that formulas are made of: which element of its operand a moved element is, and what each symbol means."""

from __future__ import annotations

from collections.abc import Callable

from racefree.graph.program import Op
from racefree.proof.formula.terms import Number, Term, binary

Index = tuple[Term, ...]


class Unsaid(Exception):
    """This address has no simple formula."""


def total(left: Term, right: Term) -> Term:
    return binary("+", left, right, left.value + right.value)


def whole(op: Op, name: str) -> int:
    value = op.attributes.get(name)
    if not isinstance(value, int):
        raise Unsaid
    return value


def _splat(_op: Op, _index: Index) -> Index:
    return ()


def _broadcast(op: Op, index: Index) -> Index:
    shape = op.operands[0].shape
    return tuple(Number(0) if extent == 1 else at for at, extent in zip(index, shape, strict=True))


def _expand(op: Op, index: Index) -> Index:
    axis = whole(op, "axis")
    return (*index[:axis], *index[axis + 1 :])


def _transpose(op: Op, index: Index) -> Index:
    order = op.attributes.get("order")
    if not isinstance(order, tuple):
        raise Unsaid
    return tuple(index[order.index(axis)] for axis in range(len(order)))


def _reshape(op: Op, index: Index) -> Index:
    if op.attributes.get("allow_reorder"):
        raise Unsaid
    wide, narrow = op.results[0].shape, op.operands[0].shape
    if [n for n in wide if n > 1] == [n for n in narrow if n > 1]:
        kept = iter([at for at, extent in zip(index, wide, strict=True) if extent > 1])
        return tuple(Number(0) if extent == 1 else next(kept) for extent in narrow)
    flat: Term = Number(0)
    for at, extent in zip(index, wide, strict=True):
        flat = total(binary("*", flat, Number(extent), flat.value * extent), at)
    found: list[Term] = []
    for place, extent in reversed(list(enumerate(narrow))):
        rest = binary("%", flat, Number(extent), flat.value % extent) if place else flat
        found.append(rest if extent > 1 else Number(0))
        flat = binary("//", flat, Number(extent), flat.value // extent)
    return tuple(reversed(found))


MOVES: dict[str, Callable[[Op, Index], Index]] = {
    "tt.splat": _splat,
    "tt.unsplat": lambda op, _index: tuple(Number(0) for _ in op.operands[0].shape),
    "tt.broadcast": _broadcast,
    "tt.expand_dims": _expand,
    "tt.trans": _transpose,
    "tt.reshape": _reshape,
}

SYMBOLS = {
    "arith.addi": "+",
    "arith.subi": "-",
    "arith.muli": "*",
    "arith.divsi": "//",
    "arith.divui": "//",
    "arith.floordivsi": "//",
    "arith.remsi": "%",
    "arith.remui": "%",
    "arith.andi": "&",
    "arith.ori": "|",
    "arith.xori": "^",
    "arith.shli": "<<",
    "arith.shrsi": ">>",
    "arith.shrui": ">>",
    "arith.minsi": "min",
    "arith.minui": "min",
    "arith.maxsi": "max",
    "arith.maxui": "max",
}

COMPARE = {
    "eq": "==",
    "ne": "!=",
    **{sign + word: symbol for sign in "su" for word, symbol in (("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">="))},
}

EVALUATE: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "min": min,
    "max": max,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
}
