"""Shrinks a bounded linear equation to a smaller one with the same answer, remembering how to map a solution back.

Four exact rewrites run to a fixpoint: bounds tightened by what the other terms can reach, a common divisor removed, terms
collapsed when one continues the other without a gap, and a variable replaced by its quotient when the others fix its residue.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import NamedTuple

from racefree.geometry.equation import Equation


class Affine(NamedTuple):
    """The variable's old value is `offset + scale * new value`."""

    variable: int
    offset: int
    scale: int


class Merge(NamedTuple):
    """The old values of `low` and `high` are the digits of the new value of `low`: low + ratio * high."""

    low: int
    high: int
    ratio: int
    high_bound: int


Trail = list[Affine | Merge]


@dataclass(slots=True)
class Term:
    """step * z with 0 <= z <= bound; step and bound are positive."""

    step: int
    bound: int
    variable: int


@dataclass(frozen=True, slots=True)
class Reduced:
    """What is left of an equation: terms by descending step, all steps positive; no terms means target 0 is left."""

    terms: tuple[Term, ...]
    target: int
    trail: Trail
    variables: int

    def lift(self, values: Sequence[int]) -> tuple[int, ...]:
        """A solution of the original equation from one of the reduced equation."""
        full = [0] * self.variables
        for term, value in zip(self.terms, values, strict=True):
            full[term.variable] = value
        for step in reversed(self.trail):
            match step:
                case Affine(variable, offset, scale):
                    full[variable] = offset + scale * full[variable]
                case Merge(low, high, ratio, high_bound):
                    full[high] = min(high_bound, full[low] // ratio)
                    full[low] -= ratio * full[high]
        return tuple(full)


def reduce(equation: Equation) -> Reduced | None:
    """The reduced equation, or None when the equation has no solution."""
    trail: Trail = []
    terms, target = _positive(equation, trail)
    changed = True
    while changed:
        terms = _collapse(terms, trail)
        reach = sum(term.step * term.bound for term in terms)
        if not 0 <= target <= reach:
            return None
        if not terms:
            break
        target, tightened = _tighten(terms, target, reach, trail)
        terms = [term for term in terms if term.bound]
        divided = _divide(terms, target, trail)
        if divided is None:
            return None
        target, rescaled = divided
        terms = [term for term in terms if term.bound]
        changed = tightened or rescaled
    terms.sort(key=lambda term: -term.step)
    if not terms and target:
        return None
    return Reduced(tuple(terms), target, trail, len(equation.terms))


def _positive(equation: Equation, trail: Trail) -> tuple[list[Term], int]:
    terms, target = [], equation.target
    for variable, (step, bound) in enumerate(equation.terms):
        if step == 0 or bound == 0:
            continue
        if step < 0:
            target -= step * bound
            trail.append(Affine(variable, bound, -1))
        terms.append(Term(abs(step), bound, variable))
    return terms, target


def _collapse(terms: list[Term], trail: Trail) -> list[Term]:
    """Merge (s, U) and (r*s, V) into (s, U + r*V) while r <= U + 1, so that no value is skipped."""
    terms = sorted(terms, key=lambda term: term.step)
    high = 1
    while high < len(terms):
        upper = terms[high]
        for lower in terms[:high]:
            ratio, rest = divmod(upper.step, lower.step)
            if rest == 0 and ratio <= lower.bound + 1:
                trail.append(Merge(lower.variable, upper.variable, ratio, upper.bound))
                lower.bound += ratio * upper.bound
                del terms[high]
                high = 0
                break
        high += 1
    return terms


def _tighten(terms: list[Term], target: int, reach: int, trail: Trail) -> tuple[int, bool]:
    """Cut each range to the values the other terms can complete, and start it at 0 again."""
    changed = False
    for term in terms:
        others = reach - term.step * term.bound
        low = max(0, -((others - target) // term.step))
        high = min(term.bound, target // term.step)
        if low > 0:
            trail.append(Affine(term.variable, low, 1))
            target -= term.step * low
        if low > 0 or high < term.bound:
            changed = True
            term.bound = high - low
            reach = others + term.step * term.bound
            if term.bound < 0 or not 0 <= target <= reach:
                # No value is left; a target no term reaches makes the caller's range test fail.
                return -1, True
    return target, changed


def _divide(terms: list[Term], target: int, trail: Trail) -> tuple[int, bool] | None:
    """Divide by the common divisor; where all terms but one share a divisor, that one's residue is fixed."""
    if target < 0:
        return target, True
    common = gcd(*(term.step for term in terms))
    if not terms:
        return target, False
    if target % common:
        return None
    target //= common
    for term in terms:
        term.step //= common
    changed = False
    for chosen in terms:
        divisor = gcd(*(term.step for term in terms if term is not chosen))
        if divisor <= 1:
            continue
        residue = target * pow(chosen.step, -1, divisor) % divisor
        if residue > chosen.bound:
            return None
        trail.append(Affine(chosen.variable, residue, divisor))
        target = (target - chosen.step * residue) // divisor
        chosen.bound = (chosen.bound - residue) // divisor
        for term in terms:
            if term is not chosen:
                term.step //= divisor
        changed = True
    return target, changed
