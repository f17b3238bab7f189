"""Rebuilds terms with variables replaced, folding what becomes constant; and walks over the atoms of a term."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import assert_never

from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.folding import decided, folded
from racefree.proof.symbolic.terms import (
    TRUE,
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
    scale,
    variable,
)


class Replacer:
    """Replaces variables by terms (None keeps one) all at once, remembering what it has rebuilt.

    `unknowns` is put behind the names of unknown values and conditions. `reads` may replace a read whose address has been
    rebuilt. With a `bounder`, what the bounds decide is folded.
    """

    def __init__(
        self,
        variables: Callable[[Var], Sum | None],
        *,
        unknowns: str = "",
        reads: Callable[[Read], Sum | None] | None = None,
        bounder: Bounder | None = None,
    ) -> None:
        self._variables = variables
        self._suffix = unknowns
        self._reads = reads
        self._bounder = bounder
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
                return self._folded(apply(atom.function, self.sum(atom.left), self.sum(atom.right)))
            case Choose():
                return choose(self.condition(atom.condition), self.sum(atom.then), self.sum(atom.other))
            case Read():
                rebuilt = Read(atom.bytes, self.sum(atom.address), atom.low, atom.high)
                found = None if self._reads is None else self._reads(rebuilt)
                return Sum(0, ((rebuilt, 1),)) if found is None else found
            case _:
                assert_never(atom)

    def _folded(self, term: Sum) -> Sum:
        if self._bounder is None or term.constant or len(term.parts) != 1:
            return term
        atom, factor = term.parts[0]
        return folded(atom, self._bounder) if isinstance(atom, Apply) and factor == 1 else term

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
                made = compare(condition.relation, self.sum(condition.left), self.sum(condition.right))
                return decided(made, self._bounder) if self._bounder and isinstance(made, Compare) else made
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


def guarded_reads(conditions: Iterable[Condition]) -> Iterator[tuple[Read, Condition]]:
    """Every read below some conditions that all hold, with what else must hold for it to happen, each pair once.

    What a choice reads happens where the choice is made; what stands right of `or` where the left does not hold, and right
    of an `and` where the left does (which is no more to ask of parts that all hold).
    """
    seen: set[tuple[object, Condition]] = set()
    stack: list[tuple[Term | Atom, Condition]] = []
    held = list(conditions)
    while held:
        condition = held.pop()
        if isinstance(condition, Both):
            held += [condition.left, condition.right]
        else:
            stack.append((condition, TRUE))
    while stack:
        term, guard = stack.pop()
        if (term, guard) in seen:
            continue
        seen.add((term, guard))
        match term:
            case Sum():
                stack.extend((a, guard) for a, _ in term.parts)
            case Apply() | Compare():
                stack.extend(((term.left, guard), (term.right, guard)))
            case Both():
                stack.extend(((term.left, guard), (term.right, both(guard, term.left))))
            case Either():
                stack.extend(((term.left, guard), (term.right, both(guard, negate(term.left)))))
            case Choose():
                stack.append((term.condition, guard))
                stack.append((term.then, both(guard, term.condition)))
                stack.append((term.other, both(guard, negate(term.condition))))
            case Not():
                stack.append((term.operand, guard))
            case Read():
                stack.append((term.address, guard))
                yield term, guard
            case Unknown() | FreeTruth():
                stack.extend((i, guard) for i in term.indices)
            case Var() | Truth():
                pass
            case _:
                assert_never(term)
