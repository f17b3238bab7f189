"""Decides a bounded linear equation: reduce it, then search, then the slower methods, each within a fixed limit."""

from __future__ import annotations

from functools import lru_cache

from racefree.geometry.bitset import QUICK_WORK, bitset
from racefree.geometry.equation import UNKNOWN, Equation, Unknown
from racefree.geometry.halves import halves
from racefree.geometry.isl_solve import isl_solve
from racefree.geometry.reduction import Term, reduce
from racefree.geometry.search import search

DEFAULT_BUDGET = 5_000
"""Nodes of the depth-first search; about 1 microsecond each."""


def solve(equation: Equation, budget: int = DEFAULT_BUDGET) -> tuple[int, ...] | Unknown | None:
    """A solution of the equation, None when it has none, UNKNOWN when no method decided it.

    `budget` limits the search; the methods after it have their own limits, so that any call ends within about a second.
    Every solution is checked by plain evaluation before it is returned.
    """
    reduced = reduce(equation)
    if reduced is None:
        return None
    values = _solve_reduced(reduced.terms, reduced.target, budget)
    if values is None or values is UNKNOWN:
        return values
    solution = reduced.lift(values)
    if not equation.holds(solution):
        raise AssertionError(f"{solution} does not solve {equation}")
    return solution


def _solve_reduced(terms: tuple[Term, ...], target: int, budget: int) -> list[int] | Unknown | None:
    values = search(terms, target, budget)
    for method in (_quick_bitset, halves, isl_solve, bitset):
        if values is not UNKNOWN:
            return values
        values = method(terms, target)
    return values


def _quick_bitset(terms: tuple[Term, ...], target: int) -> list[int] | Unknown | None:
    return bitset(terms, target, work_limit=QUICK_WORK)


@lru_cache(maxsize=1 << 16)
def searchable(equation: Equation, budget: int = DEFAULT_BUDGET) -> bool | None:
    """`solvable` by reduction and search alone: never slow, and None more often."""
    reduced = reduce(equation)
    if reduced is None:
        return False
    values = search(reduced.terms, reduced.target, budget)
    return None if values is UNKNOWN else values is not None


@lru_cache(maxsize=1 << 16)
def solvable(equation: Equation, budget: int = DEFAULT_BUDGET) -> bool | None:
    """Whether the equation has a solution, None when unknown; remembers recent answers."""
    values = solve(equation, budget)
    return None if values is UNKNOWN else values is not None
