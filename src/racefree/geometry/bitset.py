"""Decides a reduced equation whose target is small enough to mark every reachable sum as one bit of a long integer."""

from __future__ import annotations

from racefree.geometry.equation import UNKNOWN, Unknown
from racefree.geometry.reduction import Term

BIT_LIMIT = 1 << 27
QUICK_WORK = 1 << 29
WORK_LIMIT = 1 << 32
"""Bits shifted and merged: about 0.1 and 0.5 seconds."""


def bitset(terms: tuple[Term, ...], target: int, *, work_limit: int = WORK_LIMIT) -> list[int] | Unknown | None:
    """Values of the terms that sum to `target`, None when there are none, UNKNOWN when it would cost too much."""
    reach = sum(term.step * term.bound for term in terms)
    # z -> bound - z turns the target into its distance from the largest sum; the smaller target needs fewer bits.
    mirrored = reach - target < target
    goal = reach - target if mirrored else target
    if goal < 0:
        return None
    bounds = [min(term.bound, goal // term.step) for term in terms]
    work = (goal + 1) * sum(bound.bit_length() for bound in bounds)
    if goal + 1 > BIT_LIMIT or work > work_limit:
        return UNKNOWN
    values = _solve(terms, bounds, goal)
    if values is None or not mirrored:
        return values
    return [term.bound - value for term, value in zip(terms, values, strict=True)]


def _solve(terms: tuple[Term, ...], bounds: list[int], goal: int) -> list[int] | None:
    mask = (1 << (goal + 1)) - 1
    prefixes = [1]
    for term, bound in zip(terms, bounds, strict=True):
        prefixes.append(_extend(prefixes[-1], term.step, bound) & mask)
    if not prefixes.pop() >> goal & 1:
        return None
    values = [0] * len(terms)
    rest = goal
    while prefixes:
        # Bytes, because testing one bit of a long integer costs its whole length.
        bits = prefixes.pop().to_bytes(goal // 8 + 1, "little")
        at = len(prefixes)
        step = terms[at].step
        values[at] = next(
            value for value in range(bounds[at] + 1) if value * step <= rest and _bit(bits, rest - value * step)
        )
        rest -= values[at] * step
    return values


def _extend(sums: int, step: int, bound: int) -> int:
    """The sums with one more term, doubling the number of its values covered each time."""
    covered = 0
    while covered < bound:
        more = min(covered + 1, bound - covered)
        sums |= sums << step * more
        covered += more
    return sums


def _bit(bits: bytes, at: int) -> int:
    return bits[at >> 3] >> (at & 7) & 1
