"""Depth-first search for a solution of a reduced equation, over descending steps, with exact bounds at every level."""

from __future__ import annotations

from math import gcd

from racefree.geometry.equation import UNKNOWN, Unknown
from racefree.geometry.reduction import Term


class _OutOfBudget(Exception):
    """The node budget is spent."""


class _Search:
    """Suffix facts of the terms, and the digits chosen so far.

    From level i on, sums are multiples of `divisors[i]` in [0, reaches[i]]; where `solid[i]`, every such multiple is a sum.
    """

    __slots__ = ("budget", "dead", "digits", "divisors", "inverses", "moduli", "reaches", "solid", "terms")

    def __init__(self, terms: tuple[Term, ...], budget: int) -> None:
        n = len(terms)
        self.terms = terms
        self.reaches = [0] * (n + 1)
        self.divisors = [0] * (n + 1)
        self.solid = [True] * (n + 1)
        self.moduli = [1] * n
        self.inverses = [0] * n
        self.digits = [0] * n
        self.dead: set[tuple[int, int]] = set()
        self.budget = budget
        for i in range(n - 1, -1, -1):
            step, below = terms[i].step, self.divisors[i + 1]
            self.reaches[i] = self.reaches[i + 1] + step * terms[i].bound
            self.divisors[i] = gcd(below, step)
            gapless = below == self.divisors[i] and step <= self.reaches[i + 1] + below
            self.solid[i] = below == 0 or (self.solid[i + 1] and gapless)
            if below:
                self.moduli[i] = below // self.divisors[i]
                self.inverses[i] = pow(step // self.divisors[i], -1, self.moduli[i])

    def visit(self, level: int, rest: int) -> bool:
        """True when the terms from `level` on reach `rest`, a multiple of the level's divisor within its reach."""
        if self.solid[level]:
            self._fill(level, rest)
            return True
        if (level, rest) in self.dead:
            return False
        term, modulus = self.terms[level], self.moduli[level]
        low = max(0, -((self.reaches[level + 1] - rest) // term.step))
        high = min(term.bound, rest // term.step)
        residue = rest // self.divisors[level] * self.inverses[level] % modulus
        for digit in range(low + (residue - low) % modulus, high + 1, modulus):
            self.budget -= 1
            if self.budget < 0:
                raise _OutOfBudget
            self.digits[level] = digit
            if self.visit(level + 1, rest - term.step * digit):
                return True
        self.dead.add((level, rest))
        return False

    def _fill(self, level: int, rest: int) -> None:
        """Greedy digits are right where the suffix has no gaps."""
        for i in range(level, len(self.terms)):
            self.digits[i] = min(self.terms[i].bound, rest // self.terms[i].step)
            rest -= self.terms[i].step * self.digits[i]


def search(terms: tuple[Term, ...], target: int, budget: int) -> list[int] | Unknown | None:
    """Values of the terms that sum to `target`, None when there are none, UNKNOWN after `budget` nodes.

    Steps that each exceed all smaller terms together leave one digit per level, so such an equation takes one pass; the
    last two terms take one step, since the modular inverse names the only digit worth trying.
    """
    state = _Search(terms, budget)
    if not 0 <= target <= state.reaches[0] or (terms and target % state.divisors[0]):
        return None
    try:
        return state.digits if state.visit(0, target) else None
    except _OutOfBudget:
        return UNKNOWN
