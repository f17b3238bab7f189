"""Inclusive bounds of a term from those of its variables alone, never from a mask, a path or a loop's range."""

from __future__ import annotations

from typing import assert_never

from racefree.proof.symbolic.terms import Apply, Atom, Choose, Fn, Read, Sum, Unknown, Var

Bounds = tuple[int | None, int | None]


class Bounder:
    """Interval arithmetic with unbounded ends (None)."""

    def __init__(self) -> None:
        self._known: dict[Atom, Bounds] = {}

    def of(self, term: Sum) -> Bounds:
        low: int | None = term.constant
        high: int | None = term.constant
        for atom, factor in term.parts:
            bottom, top = self._atom(atom)
            if factor < 0:
                bottom, top = top, bottom
            low = None if low is None or bottom is None else low + factor * bottom
            high = None if high is None or top is None else high + factor * top
        return low, high

    def never_negative(self, term: Sum) -> bool:
        low, _ = self.of(term)
        return low is not None and low >= 0

    def positive(self, term: Sum) -> bool:
        low, _ = self.of(term)
        return low is not None and low > 0

    def _atom(self, atom: Atom) -> Bounds:
        found = self._known.get(atom)
        if found is None:
            found = self._known[atom] = self._bounds(atom)
        return found

    def _bounds(self, atom: Atom) -> Bounds:
        match atom:
            case Var():
                return atom.low, atom.high
            case Read() | Unknown():
                return atom.low, atom.high
            case Choose():
                a, b = self.of(atom.then), self.of(atom.other)
                return _least(a[0], b[0]), _greatest(a[1], b[1])
            case Apply():
                return self._apply(atom)
            case _:
                assert_never(atom)

    def _apply(self, atom: Apply) -> Bounds:
        a, b = self.of(atom.left), self.of(atom.right)
        match atom.function:
            case Fn.MUL:
                return _product(a, b)
            case Fn.MIN:
                return _least(a[0], b[0]), _smaller(a[1], b[1])
            case Fn.MAX:
                return _larger(a[0], b[0]), _greatest(a[1], b[1])
            case Fn.DIV | Fn.FLOOR:
                return _quotient(a, b, floor=atom.function is Fn.FLOOR)
            case Fn.REM | Fn.MOD:
                return _remainder(a, b, floor=atom.function is Fn.MOD)
            case Fn.AND:
                return _masked(a, b)
            case Fn.OR | Fn.XOR:
                return _bits(a, b)
            case Fn.SHL | Fn.SHR:
                return (
                    (0, a[1] if atom.function is Fn.SHR else None) if a[0] is not None and a[0] >= 0 else (None, None)
                )


def _least(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else min(a, b)


def _greatest(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else max(a, b)


def _smaller(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else min(a, b)


def _larger(a: int | None, b: int | None) -> int | None:
    return b if a is None else a if b is None else max(a, b)


def _product(a: Bounds, b: Bounds) -> Bounds:
    if a[0] is not None and b[0] is not None and a[0] >= 0 and b[0] >= 0:
        return a[0] * b[0], None if a[1] is None or b[1] is None else a[1] * b[1]
    ends = (*a, *b)
    if any(e is None for e in ends):
        return None, None
    products = [x * y for x in a for y in b if x is not None and y is not None]
    return min(products), max(products)


def _quotient(a: Bounds, b: Bounds, *, floor: bool) -> Bounds:
    if b[0] is None or b[0] <= 0:
        return None, None
    low = high = None
    if a[0] is not None and a[0] >= 0:
        low = 0 if b[1] is None else a[0] // b[1]
    elif a[0] is not None:
        low = a[0] // b[0] if floor else -(-a[0] // b[0])
    if a[1] is not None:
        high = a[1] // b[0] if a[1] >= 0 else (-1 if floor else 0)
    return low, high


def _remainder(a: Bounds, b: Bounds, *, floor: bool) -> Bounds:
    top = None
    if b[0] is not None and b[1] is not None and (b[0] > 0 or b[1] < 0):
        top = max(abs(b[0]), abs(b[1])) - 1
    if floor or (a[0] is not None and a[0] >= 0):
        high = top
        if a[0] is not None and a[0] >= 0:
            high = _smaller(top, a[1])
        return 0, high
    return (None if top is None else -top), top


def _masked(a: Bounds, b: Bounds) -> Bounds:
    tops = [x[1] for x in (a, b) if x[0] is not None and x[0] >= 0 and x[1] is not None]
    return (0, min(tops)) if tops else (None, None)


def _bits(a: Bounds, b: Bounds) -> Bounds:
    if any(x[0] is None or x[0] < 0 or x[1] is None for x in (a, b)):
        return None, None
    top = max(a[1] or 0, b[1] or 0)
    return 0, (1 << top.bit_length()) - 1
