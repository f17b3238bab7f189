"""Makes a conjunction smaller without changing what it says.

Variables that it fixes are replaced everywhere, and alternatives that another part of it rules out are left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from racefree.proof.symbolic.replacing import Replacer
from racefree.proof.symbolic.terms import (
    FALSE,
    TRUE,
    Both,
    Compare,
    Condition,
    Either,
    Relation,
    Sum,
    Var,
    either,
    negate,
    number,
    variable,
)


def conjuncts(conditions: Iterable[Condition]) -> list[Condition]:
    """The parts of a conjunction, each once."""
    out: dict[Condition, None] = {}
    stack = list(conditions)[::-1]
    while stack:
        condition = stack.pop()
        if isinstance(condition, Both):
            stack += [condition.right, condition.left]
        elif condition != TRUE:
            out[condition] = None
    return list(out)


def resolved(conditions: Sequence[Condition]) -> list[Condition]:
    """The parts of a conjunction without the alternatives that contradict another part."""
    parts = conjuncts(conditions)
    while True:
        known: set[Condition] = {c for c in parts if not isinstance(c, Either)}
        rest = conjuncts(c if c in known else _possible(c, known) for c in parts)
        if rest == parts:
            return parts
        parts = rest


def _possible(condition: Condition, known: set[Condition]) -> Condition:
    out: Condition = FALSE
    for alternative in _alternatives(condition):
        parts = conjuncts([alternative])
        if all(part in known for part in parts):
            return TRUE
        if not any(negate(part) in known for part in parts):
            out = either(out, alternative)
    return out


def _alternatives(condition: Condition) -> list[Condition]:
    out: list[Condition] = []
    stack = [condition]
    while stack:
        condition = stack.pop()
        if isinstance(condition, Either):
            stack += [condition.right, condition.left]
        else:
            out.append(condition)
    return out


def substituted(conditions: Sequence[Condition]) -> list[Condition]:
    """The same with each variable that equals a number or another variable replaced by it, as far as the bounds agree."""
    while fixed := _all_fixed(conditions):
        replacer = Replacer(fixed.get)
        conditions = [c for c in conjuncts(map(replacer.condition, conditions)) if c != TRUE]
        if FALSE in conditions:
            return [FALSE]
    return list(conditions)


def _all_fixed(conditions: Iterable[Condition]) -> dict[Var, Sum]:
    """Variables to replace at once: none of them is among what takes their place."""
    out: dict[Var, Sum] = {}
    kept: set[Var] = set()
    for var, other in filter(None, map(_fixed, conditions)):
        same = _variable(other)
        if var not in out and var not in kept and same not in out:
            out[var] = other
            if same is not None:
                kept.add(same)
    return out


def _fixed(condition: Condition) -> tuple[Var, Sum] | None:
    """A variable and what it equals. Its own bounds are implied by those of the other, so that none is lost with it."""
    if not isinstance(condition, Compare) or condition.relation is not Relation.EQ:
        return None
    for one, other in ((condition.left, condition.right), (condition.right, condition.left)):
        var = _variable(one)
        if var is None:
            continue
        if not other.parts and _holds(var, other.constant, other.constant):
            return var, number(other.constant)
        same = _variable(other)
        if same is not None and same != var and _holds(var, same.low, same.high):
            return var, variable(same)
    return None


def _variable(term: Sum) -> Var | None:
    if term.constant or len(term.parts) != 1 or term.parts[0][1] != 1:
        return None
    atom = term.parts[0][0]
    return atom if isinstance(atom, Var) else None


def _holds(var: Var, low: int | None, high: int | None) -> bool:
    """Numbers between `low` and `high` are all within the bounds of a variable."""
    above = var.low is None or (low is not None and low >= var.low)
    return above and (var.high is None or (high is not None and high <= var.high))
