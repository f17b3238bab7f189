"""Conditions as the text of an integer set that holds all their solutions, with one dimension per variable.

What is not linear is kept as far as linear arithmetic can say it: equations over products are split into cases (see
`products`), quotients and remainders keep their ranges and tell dividends apart (see `divisions`), anything else is a dimension
of its own. So the set may be larger than the solutions, and only its emptiness says something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from racefree.proof.affine.divisions import Division, apart, own
from racefree.proof.affine.products import linearised
from racefree.proof.affine.simplify import conjuncts, resolved, substituted
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.terms import (
    Apply,
    Atom,
    Both,
    Choose,
    Compare,
    Condition,
    Either,
    Fn,
    FreeTruth,
    Not,
    Read,
    Relation,
    Sum,
    Truth,
    Unknown,
    Var,
    subtract,
)

MAX_DIMENSIONS = 60
FEW_ALTERNATIVES = 6


class TooLarge(Exception):
    """The set would have too many dimensions to be worth asking about."""


@dataclass(frozen=True, slots=True)
class SetText:
    """Sets in isl's syntax whose intersection holds all solutions of some conditions.

    `exact` if it holds nothing else, once unknown values and reads are taken to be free.
    """

    parts: tuple[str, ...]
    exact: bool


def set_text(conditions: Sequence[Condition]) -> SetText:
    """The integers that satisfy the conditions, and perhaps more. Raises `TooLarge`."""
    return _Writer().write(conditions)


class _Writer:
    def __init__(self) -> None:
        self._names: dict[object, str] = {}
        self._facts: list[str] = []
        self._divisions: dict[tuple[Sum, Sum, bool], Division] = {}
        self._bounder = Bounder()
        self._exact = True

    def write(self, conditions: Sequence[Condition]) -> SetText:
        """Conditions without alternatives come first: they rule out most cases of the others as the set is built."""
        given = resolved(substituted(conjuncts(conditions)))
        plain = conjuncts(linearised(given, self._bounder))
        self._exact = plain == given
        said = [self._condition(c) for c in plain]
        divisions = list(self._divisions.values())
        for n, division in enumerate(divisions):
            self._facts += [fact for other in divisions[:n] for fact in apart(other, division)]
        if len(self._names) > MAX_DIMENSIONS:
            raise TooLarge
        names = ", ".join(self._names.values())
        ordered = sorted([*self._facts, *said], key=_alternatives)
        simple = [text for text in ordered if _alternatives(text) <= FEW_ALTERNATIVES]
        parts = [simple, ordered[len(simple) :]]
        return SetText(tuple(f"{{ [{names}] : {' and '.join(p)} }}" for p in parts if p), self._exact)

    def _name(self, key: object, low: int | None, high: int | None) -> str:
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = f"v{len(self._names)}"
            if low is not None:
                self._facts.append(f"{found} >= {low}")
            if high is not None:
                self._facts.append(f"{found} <= {high}")
        return found

    def _sum(self, term: Sum) -> str:
        parts = [self._atom(atom) if factor == 1 else f"{factor}*{self._atom(atom)}" for atom, factor in term.parts]
        if term.constant or not parts:
            parts.append(str(term.constant))
        return parts[0] if len(parts) == 1 else "(" + " + ".join(parts) + ")"

    def _atom(self, atom: Atom) -> str:
        match atom:
            case Var():
                return self._name((atom.kind, atom.name), atom.low, atom.high)
            case Unknown():
                return self._name(atom, atom.low, atom.high)
            case Read():
                return self._name(atom, atom.low, atom.high)
            case Choose():
                return self._chosen(atom)
            case Apply():
                return self._applied(atom)
            case _:
                assert_never(atom)

    def _chosen(self, atom: Choose) -> str:
        if atom in self._names:
            return self._names[atom]
        condition = self._condition(atom.condition)
        then, other = self._sum(atom.then), self._sum(atom.other)
        name = self._name(atom, None, None)
        self._facts.append(f"(({condition} and {name} = {then}) or (not {condition} and {name} = {other}))")
        return name

    def _applied(self, atom: Apply) -> str:
        if atom in self._names:
            return self._names[atom]
        match atom.function:
            case Fn.MIN | Fn.MAX:
                left, right = self._sum(atom.left), self._sum(atom.right)
                name = self._name(atom, None, None)
                sign = "<=" if atom.function is Fn.MIN else ">="
                self._facts.append(f"({name} {sign} {left} and {name} {sign} {right})")
                self._facts.append(f"({name} = {left} or {name} = {right})")
                return name
            case Fn.FLOOR | Fn.MOD | Fn.DIV | Fn.REM if not atom.right.parts and atom.right.constant > 0:
                return self._divided(atom)
            case Fn.FLOOR | Fn.MOD | Fn.DIV | Fn.REM if atom.right.parts:
                return self._divided_by_term(atom)
            case _:
                self._exact = False
                return self._name(atom, *self._bounder.of(Sum(0, ((atom, 1),))))

    def _divided(self, atom: Apply) -> str:
        """Division by a positive constant, as quotient and remainder."""
        left = self._sum(atom.left)
        divisor = atom.right.constant
        floors = atom.function in (Fn.FLOOR, Fn.MOD) or self._bounder.never_negative(atom.left)
        quotient = self._name((atom.left, divisor, floors), None, None)
        rest = f"({left} - {divisor}*{quotient})"
        bounded = f"(0 <= {rest} and {rest} < {divisor})"
        if not floors:
            negative = f"({left} < 0 and -{divisor} < {rest} and {rest} <= 0)"
            bounded = f"(({left} >= 0 and {bounded}) or {negative})"
        if bounded not in self._facts:
            self._facts.append(bounded)
        return quotient if atom.function in (Fn.FLOOR, Fn.DIV) else rest

    def _divided_by_term(self, atom: Apply) -> str:
        """Quotient and remainder as dimensions of their own."""
        self._exact = False
        plain = self._bounder.never_negative(atom.left) and self._bounder.positive(atom.right)
        key = (atom.left, atom.right, plain or atom.function in (Fn.FLOOR, Fn.MOD))
        found = self._divisions.get(key)
        if found is None:
            left, right = self._sum(atom.left), self._sum(atom.right)
            quotient, rest = (self._name((which, *key), None, None) for which in ("quotient", "rest"))
            found = Division(left, right, quotient, rest, plain, self._bounder.of(atom.right))
            self._divisions[key] = found
            self._facts += own(found)
        return found.quotient if atom.function in (Fn.FLOOR, Fn.DIV) else found.rest

    def _condition(self, condition: Condition) -> str:
        match condition:
            case Truth():
                return "(1 = 1)" if condition.value else "(1 = 0)"
            case FreeTruth():
                return f"({self._name(condition, 0, 1)} = 1)"
            case Not():
                return f"(not {self._condition(condition.operand)})"
            case Both():
                return f"({self._condition(condition.left)} and {self._condition(condition.right)})"
            case Either():
                return f"({self._condition(condition.left)} or {self._condition(condition.right)})"
            case Compare():
                difference = subtract(condition.left, condition.right)
                left, right = self._sum(Sum(0, difference.parts)), -difference.constant
                if condition.relation is Relation.NE:
                    return f"({left} < {right} or {left} > {right})"
                return f"({left} {condition.relation.value} {right})"
            case _:
                assert_never(condition)


def _alternatives(text: str) -> int:
    return text.count(" or ")
