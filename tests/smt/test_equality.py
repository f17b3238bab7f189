"""Equality of terms that hold one part along exponentially many paths: comparing path by path would never end."""

from __future__ import annotations

import pytest

from racefree.proof.symbolic.terms import Fn, Relation, Sum, Var, VarKind, add, apply, both, compare, number, variable

X, Y = (variable(Var(VarKind.PARAMETER, name)) for name in "xy")


def tower(bottom: Sum, floors: int) -> Sum:
    for floor in range(floors):
        bottom = apply(Fn.MAX, apply(Fn.MUL, bottom, bottom), add((bottom, number(floor))))
    return bottom


@pytest.mark.parametrize("floors", [0, 1, 3, 300])
def test_a_tower_equals_itself_built_again_and_no_other(floors: int) -> None:
    assert tower(X, floors) == tower(X, floors)
    assert tower(X, floors) != tower(Y, floors)
    assert tower(X, floors) != tower(X, floors + 1)
    assert {tower(X, floors): 1}[tower(X, floors)] == 1


def test_conditions_are_compared_part_by_part() -> None:
    less, most = compare(Relation.LT, X, Y), compare(Relation.LE, X, Y)
    assert both(less, most) == both(compare(Relation.LT, X, Y), compare(Relation.LE, X, Y))
    assert less != most
    assert less != compare(Relation.LT, Y, X)
    assert less != X
