"""Decides whether two different index vectors of one pattern share a byte."""

from __future__ import annotations

from collections.abc import Collection

from racefree.access import Pattern
from racefree.geometry.decide import DEFAULT_BUDGET, solve
from racefree.geometry.equation import UNKNOWN, Equation, Unknown, is_empty
from racefree.geometry.overlap import Witness, shared_byte


def self_overlap_witness(
    pattern: Pattern, *, distinct: Collection[int] | None = None, budget: int = DEFAULT_BUDGET
) -> Witness | Unknown | None:
    """Two index vectors of one pattern that differ and share a byte, None when there are none, UNKNOWN when undecided.

    With `distinct`, the vectors must differ in at least one of these dims (positions in `pattern.dims`); the others are
    free. So a dim that stands for the program id asks whether two programs meet.
    """
    if is_empty(pattern):
        return None
    dims = pattern.dims
    chosen = range(len(dims)) if distinct is None else sorted(set(distinct))
    # The first differing dim, in this order, tells the cases apart; large steps first, since then most cases have no
    # solution for reasons of range alone. By symmetry the first difference is positive.
    order = sorted((i for i in chosen if dims[i].count > 1), key=lambda i: (-abs(dims[i].step_bytes), i))
    undecided = False
    for position, first in enumerate(order):
        equal = set(order[:position])
        solution = solve(_differences(pattern, first, equal), budget)
        if solution is UNKNOWN:
            undecided = True
        elif solution is not None:
            return _witness(pattern, solution, first, equal)
    return UNKNOWN if undecided else None


def is_injective(
    pattern: Pattern, *, distinct: Collection[int] | None = None, budget: int = DEFAULT_BUDGET
) -> bool | None:
    """True when different index vectors touch disjoint bytes, None when undecided. `distinct` as for the witness."""
    found = self_overlap_witness(pattern, distinct=distinct, budget=budget)
    return None if found is UNKNOWN else found is None


def _differences(pattern: Pattern, first: int, equal: set[int]) -> Equation:
    """sum(step * difference) + (offset in one element - offset in the other) = 0, each difference shifted to start at 0."""
    terms = []
    target = pattern.elem_bytes - 1
    for i, dim in enumerate(pattern.dims):
        low, high = _range(dim.count, i, first, equal)
        terms.append((dim.step_bytes, high - low))
        target -= dim.step_bytes * low
    return Equation((*terms, (1, 2 * pattern.elem_bytes - 2)), target)


def _range(count: int, i: int, first: int, equal: set[int]) -> tuple[int, int]:
    if i in equal:
        return 0, 0
    return (1, count - 1) if i == first else (1 - count, count - 1)


def _witness(pattern: Pattern, solution: tuple[int, ...], first: int, equal: set[int]) -> Witness:
    at_a, at_b = [], []
    for i, dim in enumerate(pattern.dims):
        difference = solution[i] + _range(dim.count, i, first, equal)[0]
        at_a.append(max(difference, 0))
        at_b.append(max(-difference, 0))
    return shared_byte(pattern, tuple(at_a), pattern, tuple(at_b))
