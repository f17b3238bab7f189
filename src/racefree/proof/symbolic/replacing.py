"""Rebuilds terms with variables replaced, folding what becomes constant; and walks over the atoms of a term."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import assert_never

from racefree.proof.symbolic.terms import (
    Apply,
    Atom,
    Both,
    Choose,
    Compare,
    Condition,
    Either,
    FreeTruth,
    Not,
    Read,
    Sum,
    Term,
    Truth,
    Unknown,
    Var,
    add,
    apply,
    both,
    choose,
    compare,
    either,
    negate,
    read,
    scale,
    variable,
)


class Replacer:
    """Replaces variables by terms (None keeps one) all at once, remembering what it has rebuilt.

    `unknowns` is put behind the names of unknown values and conditions.
    """

    def __init__(self, variables: Callable[[Var], Sum | None], *, unknowns: str = "") -> None:
        self._variables = variables
        self._suffix = unknowns
        self._atoms: dict[Atom, Sum] = {}
        self._sums: dict[Sum, Sum] = {}
        self._conditions: dict[Condition, Condition] = {}

    def sum(self, term: Sum) -> Sum:
        found = self._sums.get(term)
        if found is None:
            parts = [Sum(term.constant)] + [scale(self._atom(a), f) for a, f in term.parts]
            found = self._sums[term] = add(parts)
        return found

    def _atom(self, atom: Atom) -> Sum:
        found = self._atoms.get(atom)
        if found is None:
            found = self._atoms[atom] = self._rebuilt(atom)
        return found

    def _rebuilt(self, atom: Atom) -> Sum:
        match atom:
            case Var():
                replaced = self._variables(atom)
                return variable(atom) if replaced is None else replaced
            case Unknown():
                return Sum(
                    0,
                    ((Unknown(atom.name + self._suffix, tuple(map(self.sum, atom.indices)), atom.low, atom.high), 1),),
                )
            case Apply():
                return apply(atom.function, self.sum(atom.left), self.sum(atom.right))
            case Choose():
                return choose(self.condition(atom.condition), self.sum(atom.then), self.sum(atom.other))
            case Read():
                return read(atom.bytes, self.sum(atom.address), atom.low, atom.high)
            case _:
                assert_never(atom)

    def condition(self, condition: Condition) -> Condition:
        found = self._conditions.get(condition)
        if found is None:
            found = self._conditions[condition] = self._condition(condition)
        return found

    def _condition(self, condition: Condition) -> Condition:
        match condition:
            case Truth():
                return condition
            case FreeTruth():
                return FreeTruth(condition.name + self._suffix, tuple(map(self.sum, condition.indices)))
            case Not():
                return negate(self.condition(condition.operand))
            case Both():
                return both(self.condition(condition.left), self.condition(condition.right))
            case Either():
                return either(self.condition(condition.left), self.condition(condition.right))
            case Compare():
                return compare(condition.relation, self.sum(condition.left), self.sum(condition.right))
            case _:
                assert_never(condition)

    def term(self, term: Term) -> Term:
        return self.sum(term) if isinstance(term, Sum) else self.condition(term)


def replace_in(term: Sum, mapping: dict[Var, Sum]) -> Sum:
    return Replacer(mapping.get).sum(term)


def leaves(*terms: Term) -> Iterator[Var | Unknown | FreeTruth | Read]:
    """Every variable, unknown condition and read below some terms, each once."""
    seen: set[object] = set()
    stack: list[Term | Atom] = list(terms)
    while stack:
        term = stack.pop()
        if term in seen:
            continue
        seen.add(term)
        match term:
            case Sum():
                stack.extend(a for a, _ in term.parts)
            case Apply() | Compare() | Both() | Either():
                stack.extend((term.left, term.right))
            case Choose():
                stack.extend((term.condition, term.then, term.other))
            case Not():
                stack.append(term.operand)
            case Read():
                stack.append(term.address)
                yield term
            case Unknown() | FreeTruth():
                stack.extend(term.indices)
                yield term
            case Var():
                yield term
            case Truth():
                pass
            case _:
                assert_never(term)
