"""Simplifies terms where the bounds of their variables decide, such as a remainder of what is smaller than the divisor."""

from __future__ import annotations

from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.terms import (
    ZERO,
    Apply,
    Compare,
    Condition,
    Fn,
    Relation,
    Sum,
    Truth,
    apply,
    number,
    subtract,
)


def folded(term: Apply, bounder: Bounder) -> Sum:
    """A term equal to `term` for all values within the bounds."""
    left, right = term.left, term.right
    match term.function:
        case Fn.MOD | Fn.REM if _below(left, right, bounder):
            return left
        case Fn.FLOOR | Fn.DIV if _below(left, right, bounder):
            return ZERO
        case Fn.MIN | Fn.MAX:
            low, high = bounder.of(subtract(left, right))
            if high is not None and high <= 0:
                return left if term.function is Fn.MIN else right
            if low is not None and low >= 0:
                return right if term.function is Fn.MIN else left
        case Fn.FLOOR if not right.parts and right.constant > 0:
            inner = left.parts[0] if len(left.parts) == 1 and not left.constant else None
            if inner is not None and inner[1] == 1 and isinstance(inner[0], Apply) and inner[0].function is Fn.FLOOR:
                again = inner[0].right
                if not again.parts and again.constant > 0:
                    return apply(Fn.FLOOR, inner[0].left, number(again.constant * right.constant))
        case _:
            pass
    return Sum(0, ((term, 1),))


def _below(left: Sum, right: Sum, bounder: Bounder) -> bool:
    """`0 <= left < right` always."""
    _, high = bounder.of(subtract(left, right))
    return high is not None and high < 0 and bounder.never_negative(left)


def decided(condition: Compare, bounder: Bounder) -> Condition:
    """TRUE or FALSE where the bounds say so, else the condition."""
    low, high = bounder.of(subtract(condition.left, condition.right))
    match condition.relation:
        case Relation.LT | Relation.LE:
            limit = -1 if condition.relation is Relation.LT else 0
            if high is not None and high <= limit:
                return Truth(True)
            if low is not None and low > limit:
                return Truth(False)
        case Relation.EQ | Relation.NE:
            if (low is not None and low > 0) or (high is not None and high < 0):
                return Truth(condition.relation is Relation.NE)
    return condition
