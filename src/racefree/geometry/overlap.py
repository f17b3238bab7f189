"""Decides whether two strided patterns share a byte, and which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from racefree.access import Pattern
from racefree.geometry.decide import DEFAULT_BUDGET, solvable, solve
from racefree.geometry.equation import UNKNOWN, Unknown, fold, is_empty


@dataclass(frozen=True, slots=True)
class Witness:
    """A byte both sides touch: one index per dim of each side, in the order of the dims, and the byte's address."""

    a: tuple[int, ...]
    b: tuple[int, ...]
    byte: int


def element_start(pattern: Pattern, indices: Sequence[int]) -> int:
    """The address of the first byte of the element at `indices`. Raises ValueError when an index is out of range."""
    for dim, index in zip(pattern.dims, indices, strict=True):
        if not 0 <= index < dim.count:
            raise ValueError(f"index {index} is outside 0..{dim.count - 1}")
    return pattern.base_bytes + sum(d.step_bytes * k for d, k in zip(pattern.dims, indices, strict=True))


def span(pattern: Pattern) -> tuple[int, int]:
    """The half-open range from the first byte to past the last; (base, base) for an empty pattern."""
    if is_empty(pattern):
        return pattern.base_bytes, pattern.base_bytes
    moves = [dim.step_bytes * (dim.count - 1) for dim in pattern.dims]
    low = pattern.base_bytes + sum(move for move in moves if move < 0)
    high = pattern.base_bytes + sum(move for move in moves if move > 0)
    return low, high + pattern.elem_bytes


def overlaps(a: Pattern, b: Pattern, *, budget: int = DEFAULT_BUDGET) -> bool | None:
    """Whether the patterns share a byte; None when undecided, which callers must treat as possible.

    Exact for any step, count, element size and alignment, with integers of any size. `budget` counts search nodes.
    Raises ValueError for a negative count or element size.
    """
    if is_empty(a) or is_empty(b):
        return False
    (low_a, high_a), (low_b, high_b) = span(a), span(b)
    if high_a <= low_b or high_b <= low_a:
        return False
    return solvable(fold(a, b), budget)


def overlap_witness(a: Pattern, b: Pattern, *, budget: int = DEFAULT_BUDGET) -> Witness | Unknown | None:
    """A shared byte of the patterns and the indices that reach it, None when disjoint, UNKNOWN when undecided."""
    if is_empty(a) or is_empty(b):
        return None
    solution = solve(fold(a, b), budget)
    if solution is None or solution is UNKNOWN:
        return solution
    return shared_byte(a, solution[: len(a.dims)], b, solution[len(a.dims) : -1])


def shared_byte(a: Pattern, at_a: tuple[int, ...], b: Pattern, at_b: tuple[int, ...]) -> Witness:
    """The first byte two elements share, by plain evaluation. Raises AssertionError when they share none."""
    start_a, start_b = element_start(a, at_a), element_start(b, at_b)
    byte = max(start_a, start_b)
    if byte >= min(start_a + a.elem_bytes, start_b + b.elem_bytes):
        raise AssertionError(f"the elements {at_a} of {a} and {at_b} of {b} share no byte")
    return Witness(at_a, at_b, byte)
