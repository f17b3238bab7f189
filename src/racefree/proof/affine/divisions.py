"""What linear arithmetic can say about quotients and remainders by a divisor that is no constant.

Quotient and remainder determine the dividend, so two dividends with one divisor share the quotient only where they differ by
what their remainders differ. All is said for dividends from 0 and divisors from 1 on alone.
"""

from __future__ import annotations

from dataclasses import dataclass

MOST_DIVISORS = 32


@dataclass(frozen=True, slots=True)
class Division:
    """Expressions of a division in isl's syntax: `quotient` and `rest` are dimensions of their own.

    `plain`: the dividend is never negative and the divisor always positive. `bounds` are those of the divisor, None for open.
    """

    left: str
    right: str
    quotient: str
    rest: str
    plain: bool
    bounds: tuple[int | None, int | None]


def own(division: Division) -> list[str]:
    """What holds for one division."""
    left, right, quotient, rest = division.left, division.right, division.quotient, division.rest
    small = f"({quotient} = 0 and {left} = {rest})"
    large = f"({quotient} >= 1 and {left} >= {right} + {rest} and {left} >= {quotient} + {rest})"
    said = f"(0 <= {rest} and {rest} < {right} and ({small} or {large}))"
    divisors = _divisors(division)
    if divisors:
        cases = (f"({right} = {d} and {left} = {d}*{quotient} + {rest} and 0 <= {rest} < {d})" for d in divisors)
        said = f"({' or '.join(cases)})"
    if division.plain:
        return [said]
    # Truncation rounds towards 0, so a remainder of what is not negative lies between 0 and it whatever the divisor's sign.
    below = f"({left} >= 0 and {right} <= -1 and 0 <= {rest} and {rest} <= {left})"
    return [f"(({left} >= 0 and {right} >= 1 and {said}) or {below} or {left} < 0 or {right} = 0)"]


def apart(one: Division, other: Division) -> list[str]:
    """What two divisions by one divisor say about each other."""
    if one.right != other.right or _divisors(one):
        return []
    rests = f"{one.left} - {other.left} = {one.rest} - {other.rest}"
    same = f"({one.quotient} = {other.quotient} and {rests})"
    said = f"({same} or {_less(one, other)} or {_less(other, one)})"
    if one.plain and other.plain:
        return [said]
    return [f"({said} or {one.left} < 0 or {other.left} < 0 or {one.right} < 1)"]


def _less(one: Division, other: Division) -> str:
    gap = f"{other.left} - {one.left} >= {one.right} + {other.rest} - {one.rest}"
    return f"({one.quotient} < {other.quotient} and {gap})"


def _divisors(division: Division) -> range:
    """The positive values of the divisor, where they are few."""
    low, high = division.bounds
    first = 1 if low is None else max(low, 1)
    if high is None or high - first >= MOST_DIVISORS:
        return range(0)
    return range(first, high + 1)
