"""Integer formulas over the names of a kernel, each with its value at one execution: printed, filled in, shortened.

What is printed is a Python expression: names are plain (`pid`, `lane`, `n`) or indexed (`pid[1]`, `index[17]`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import assert_never


class Varies(IntEnum):
    """What a term changes with, the strongest there is in it."""

    NEVER = 0
    LAUNCH = 1
    PROGRAM = 2
    LANE = 3


@dataclass(frozen=True, slots=True)
class Number:
    value: int
    varies: Varies = Varies.NEVER
    size: int = 1


@dataclass(frozen=True, slots=True)
class Name:
    """A name of the source, or of what tells one execution from another."""

    text: str
    value: int
    varies: Varies
    size: int = 1


@dataclass(frozen=True, slots=True)
class Element:
    """What a tensor held at `index` before the launch."""

    tensor: str
    index: Term
    value: int
    varies: Varies
    size: int


@dataclass(frozen=True, slots=True)
class Binary:
    """`symbol` is Python's operator, or the name of a function of two arguments."""

    symbol: str
    left: Term
    right: Term
    value: int
    varies: Varies
    size: int


Term = Number | Name | Element | Binary

_PRECEDENCE = {
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">="), 1),
    "|": 2,
    "^": 3,
    "&": 4,
    **dict.fromkeys(("<<", ">>"), 5),
    **dict.fromkeys(("+", "-"), 6),
    **dict.fromkeys(("//", "%"), 7),
    "*": 8,
}
_ATOM = 9
_TIGHT = frozenset("*")


def binary(symbol: str, left: Term, right: Term, value: int) -> Term:
    """`left symbol right`, which is `value`, without what changes nothing."""
    if isinstance(left, Number) and isinstance(right, Number):
        return Number(value)
    match symbol, left, right:
        case ("+" | "|" | "^", Number(0), other) | ("*", Number(1), other):
            return other
        case ("+" | "-" | "|" | "^" | "<<" | ">>", other, Number(0)) | ("*" | "//", other, Number(1)):
            return other
        case ("*" | "&", Number(0), _) | ("*" | "&", _, Number(0)) | ("%", _, Number(1)):
            return Number(0)
        case "+", Binary("+", first, Number(a)), Number(b):
            return binary("+", first, Number(a + b), value)
        case "+", other, Number(n) if n < 0:
            return _made("-", other, Number(-n), value)
        case ("+", Binary("-", Number(0), taken), other) | ("+", other, Binary("-", Number(0), taken)):
            return binary("-", other, taken, value)
        case "+", other, Binary("*", taken, Number(n), product) if n < 0:
            return _made("-", other, binary("*", taken, Number(-n), -product), value)
        case "+", Number(), other:
            return _made("+", other, left, value)
    return _made(symbol, left, right, value)


def _made(symbol: str, left: Term, right: Term, value: int) -> Term:
    return Binary(symbol, left, right, value, max(left.varies, right.varies), left.size + right.size + 1)


def element(tensor: str, index: Term, value: int) -> Term:
    return Element(tensor, index, value, max(index.varies, Varies.LAUNCH), index.size + 1)


def printed(term: Term) -> str:
    """The formula in names."""
    return _text(term, filled=False)


def filled(term: Term) -> str:
    """The formula with the value of every name in its place; what a tensor held stays, at the index it was read from."""
    return _text(term, filled=True)


def _text(term: Term, *, filled: bool, outer: int = 0) -> str:
    match term:
        case Number(value):
            return f"({value})" if value < 0 and outer else str(value)
        case Name(text, value):
            return _text(Number(value), filled=filled, outer=outer) if filled else text
        case Element(tensor, index):
            return f"{tensor}[{index.value if filled else _text(index, filled=False)}]"
        case Binary(symbol, left, right):
            return _operation(symbol, left, right, filled=filled, outer=outer)
        case _:
            assert_never(term)


def _operation(symbol: str, left: Term, right: Term, *, filled: bool, outer: int) -> str:
    own = _PRECEDENCE.get(symbol)
    if own is None:
        return f"{symbol}({_text(left, filled=filled)}, {_text(right, filled=filled)})"
    # Python chains comparisons, and no reader should have to know how the rarer operators bind.
    strict = own <= 5
    before = _text(left, filled=filled, outer=_ATOM if strict else own + 1 if symbol in ("//", "%") else own)
    after = _text(right, filled=filled, outer=own if symbol in ("+", "*") else own + 1 if symbol == "-" else _ATOM)
    gap = "" if symbol in _TIGHT else " "
    text = f"{before}{gap}{symbol}{gap}{after}"
    return f"({text})" if own < outer else text


def known_elements(term: Term) -> Term:
    """The term with every element of a tensor replaced by what it held."""
    match term:
        case Element(value=value):
            return Number(value)
        case Binary(symbol, left, right, value):
            return _made(symbol, known_elements(left), known_elements(right), value)
        case _:
            return term


def folded(term: Term, most: Varies) -> Term:
    """The term with every operation that varies no more than `most` replaced by its value."""
    match term:
        case Binary(value=value, varies=varies) if varies <= most:
            return Number(value)
        case Binary(symbol, left, right, value):
            return binary(symbol, folded(left, most), folded(right, most), value)
        case Element(tensor, index, value):
            return element(tensor, folded(index, most), value)
        case _:
            return term


def chain(term: Term, *, width: int) -> str:
    """`formula = values = result`, shortened to fit, or "" when that says nothing or cannot be made short.

    The parts that vary least are replaced by their values first.
    """
    for most in (None, Varies.LAUNCH, Varies.PROGRAM):
        short = term if most is None else folded(term, most)
        if isinstance(short, Number):
            return ""
        steps = [printed(short), filled(short), filled(known_elements(short)), str(short.value)]
        if len(steps[0]) <= width:
            return " = ".join(dict.fromkeys(steps))
    return ""


def names(term: Term) -> Iterator[Name]:
    """Every name in a term, those inside indices too."""
    match term:
        case Name():
            yield term
        case Element(index=index):
            yield from names(index)
        case Binary(left=left, right=right):
            yield from names(left)
            yield from names(right)
        case _:
            pass


def elements(term: Term) -> Iterator[Element]:
    """Every element of a tensor that a term reads."""
    match term:
        case Element(index=index):
            yield term
            yield from elements(index)
        case Binary(left=left, right=right):
            yield from elements(left)
            yield from elements(right)
        case _:
            pass


def coefficients(term: Term) -> dict[str, int] | None:
    """How much the term grows with each name that varies between executions; None when it is not linear in them."""
    if term.varies <= Varies.LAUNCH and not any(elements(term)):
        return {}
    match term:
        case Name(text):
            return {text: 1}
        case Binary("+" | "-" as symbol, left, right):
            first, second = coefficients(left), coefficients(right)
            if first is None or second is None:
                return None
            sign = 1 if symbol == "+" else -1
            return {n: first.get(n, 0) + sign * second.get(n, 0) for n in (first | second)}
        case Binary("*", left, right):
            factor, other = (left, right) if left.varies <= Varies.LAUNCH else (right, left)
            found = coefficients(other)
            if found is None or factor.varies > Varies.LAUNCH or any(elements(factor)):
                return None
            return {n: factor.value * c for n, c in found.items()}
        case _:
            return None
