"""Conditions as the text of an integer set, with one dimension per variable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

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
)

MAX_DIMENSIONS = 60


class NotLinear(Exception):
    """The conditions have a part that is no linear arithmetic."""


def set_text(conditions: Sequence[Condition]) -> str:
    """The set of all integers that satisfy the conditions, in isl's syntax. Raises `NotLinear`."""
    return _Writer().write(conditions)


class _Writer:
    def __init__(self) -> None:
        self._names: dict[object, str] = {}
        self._facts: list[str] = []
        self._bounder = Bounder()

    def write(self, conditions: Sequence[Condition]) -> str:
        wanted = [self._condition(c) for c in conditions]
        if len(self._names) > MAX_DIMENSIONS:
            raise NotLinear
        names = ", ".join(self._names.values())
        body = " and ".join([*self._facts, *wanted]) or "1 = 1"
        return f"{{ [{names}] : {body} }}"

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
        parts = [str(term.constant)]
        parts += [f"{factor}*{self._atom(atom)}" for atom, factor in term.parts]
        return "(" + " + ".join(parts) + ")"

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
        left = self._sum(atom.left)
        match atom.function:
            case Fn.MIN | Fn.MAX:
                right = self._sum(atom.right)
                name = self._name(atom, None, None)
                sign = "<=" if atom.function is Fn.MIN else ">="
                self._facts.append(f"({name} {sign} {left} and {name} {sign} {right})")
                self._facts.append(f"({name} = {left} or {name} = {right})")
                return name
            case Fn.FLOOR | Fn.MOD | Fn.DIV | Fn.REM:
                return self._divided(atom, left)
            case _:
                low, high = self._bounder.of(Sum(0, ((atom, 1),)))
                if atom.function is Fn.MUL:
                    raise NotLinear
                return self._name(atom, low, high)

    def _divided(self, atom: Apply, left: str) -> str:
        """Division by a positive constant, as quotient and remainder."""
        if atom.right.parts or atom.right.constant <= 0:
            raise NotLinear
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
                left, right = self._sum(condition.left), self._sum(condition.right)
                if condition.relation is Relation.NE:
                    return f"({left} < {right} or {left} > {right})"
                return f"({left} {condition.relation.value} {right})"
            case _:
                assert_never(condition)
