"""Folds a question about two strided patterns into one bounded linear equation over the integers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from racefree.access import Pattern


class Unknown(Enum):
    """The type of `UNKNOWN`, the answer of a question that no step could decide within its budget."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN

Terms = tuple[tuple[int, int], ...]
"""(coefficient, upper bound) per variable; coefficients have any sign, each variable runs from 0 to its bound."""


@dataclass(frozen=True, slots=True)
class Equation:
    """sum(coefficient_i * z_i) = target with 0 <= z_i <= bound_i: solvable iff the two byte sets meet."""

    terms: Terms
    target: int

    def holds(self, values: Sequence[int]) -> bool:
        """True when `values` solves the equation, by plain evaluation."""
        inside = all(0 <= value <= bound for value, (_, bound) in zip(values, self.terms, strict=True))
        return inside and sum(v * c for v, (c, _) in zip(values, self.terms, strict=True)) == self.target


def is_empty(pattern: Pattern) -> bool:
    """True when the pattern touches no byte. Raises ValueError for a negative count or element size."""
    if pattern.elem_bytes < 0 or any(dim.count < 0 for dim in pattern.dims):
        raise ValueError(f"a count or an element size is negative in {pattern}")
    return pattern.elem_bytes == 0 or any(dim.count == 0 for dim in pattern.dims)


def fold(a: Pattern, b: Pattern) -> Equation:
    """The equation whose solutions are the shared bytes of two patterns that are not empty.

    Its variables are the indices of `a`, the indices of `b`, then one that stands for both offsets inside an element, so
    that elements of different sizes and misaligned starts need no case of their own.
    """
    terms = (
        *((dim.step_bytes, dim.count - 1) for dim in a.dims),
        *((-dim.step_bytes, dim.count - 1) for dim in b.dims),
        (1, a.elem_bytes + b.elem_bytes - 2),
    )
    return Equation(terms, b.base_bytes - a.base_bytes + b.elem_bytes - 1)
