"""Tables as runs, folding by bounds, and the budget, against plain arithmetic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from evaluating import holds, integer
from hypothesis import given
from hypothesis import strategies as st

from racefree.proof.smt.budget import Budget
from racefree.proof.smt.contents import MOST_RUNS, runs_of
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.replacing import Replacer, guarded_reads
from racefree.proof.symbolic.terms import (
    TRUE,
    ZERO,
    Condition,
    Fn,
    Relation,
    Sum,
    Var,
    VarKind,
    add,
    apply,
    as_integer,
    both,
    choose,
    compare,
    either,
    negate,
    number,
    read,
    scale,
    variable,
)

A = Var(VarKind.PARAMETER, "a", 0, 5)
B = Var(VarKind.PARAMETER, "b", 2, 3)
C = Var(VarKind.PARAMETER, "c", -4, 1)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=30))
def test_runs_are_the_table(steps: list[int]) -> None:
    values = np.cumsum(np.array(steps, dtype=np.int64))
    runs = runs_of(values)
    assert runs is not None
    told = [run.value + run.step * k for run in runs for k in range(run.last - run.first + 1)]
    assert told == values.tolist()
    assert [run.first for run in runs] == [0, *(run.last + 1 for run in runs[:-1])]


def test_a_table_of_many_runs_is_left_alone() -> None:
    assert runs_of(np.array([k * k for k in range(2 * MOST_RUNS)], dtype=np.int64)) is not None
    assert runs_of(np.array([k * k for k in range(2 * MOST_RUNS + 1)], dtype=np.int64)) is None


@pytest.mark.parametrize(
    "values", [[-(1 << 63), (1 << 63) - 1], [0, (1 << 63) - 1, -2, 5], [-(1 << 62), (1 << 62) - 1]]
)
def test_steps_of_a_table_do_not_wrap(values: list[int]) -> None:
    runs = runs_of(np.array(values, dtype=np.int64))
    assert (runs is None) == (max(values) - min(values) >= 1 << 63)
    for run in runs or ():
        told = [run.value + run.step * k for k in range(run.last - run.first + 1)]
        assert told == values[run.first : run.last + 1]


def terms() -> st.SearchStrategy[Sum]:
    atoms = st.one_of(st.sampled_from([variable(v) for v in (A, B, C)]), st.integers(-3, 7).map(number))
    return st.recursive(
        atoms,
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(add),
            st.tuples(inner, st.integers(-2, 3)).map(lambda x: scale(*x)),
            st.tuples(st.sampled_from((Fn.MIN, Fn.MAX)), inner, inner).map(lambda x: apply(*x)),
            st.tuples(
                st.sampled_from((Fn.FLOOR, Fn.MOD, Fn.DIV, Fn.REM)),
                inner,
                st.one_of(st.integers(1, 9).map(number), st.just(variable(B))),
            ).map(lambda x: apply(*x)),
            st.tuples(inner, inner, inner).map(lambda x: choose(compare(Relation.LT, x[0], x[1]), x[2], x[0])),
        ),
        max_leaves=6,
    )


@given(terms(), terms(), st.sampled_from(Relation))
def test_folding_changes_no_value(left: Sum, right: Sum, relation: Relation) -> None:
    folding = Replacer(lambda _: None, bounder=Bounder())
    condition: Condition = compare(relation, left, right)
    folded, shorter = folding.condition(condition), folding.sum(left)
    for point in itertools.product(range(6), range(2, 4), range(-4, 2)):
        values = dict(zip("abc", point, strict=True))
        assert holds(condition, values) == holds(folded, values)
        assert integer(left, values) == integer(shorter, values)


def test_a_remainder_that_cannot_wrap_goes_away() -> None:
    wrapped = add((apply(Fn.MOD, add((variable(A), number(128))), number(256)), number(-128)))
    assert Replacer(lambda _: None, bounder=Bounder()).sum(wrapped) == variable(A)


def test_a_read_happens_where_its_choice_and_alternative_are_taken() -> None:
    first, second = (read(8, number(8 * n), 0, 9) for n in (1, 2))
    small, large = compare(Relation.LT, variable(A), number(3)), compare(Relation.LT, variable(C), number(0))
    chosen = compare(Relation.EQ, choose(small, first, number(0)), number(1))
    other = either(large, compare(Relation.EQ, second, number(1)))
    found = {(r.address.constant, guard) for r, guard in guarded_reads([chosen, other])}
    assert found == {(8, small), (16, negate(large))}
    assert {guard for _, guard in guarded_reads([compare(Relation.EQ, first, second)])} == {TRUE}
    looked = compare(Relation.EQ, first, number(1))
    assert {guard for _, guard in guarded_reads([both(small, looked)])} == {TRUE}
    assert {guard for _, guard in guarded_reads([either(both(small, looked), large)])} == {small}
    assert {guard for _, guard in guarded_reads([compare(Relation.LT, as_integer(both(small, looked)), ZERO)])} == {
        small
    }


def test_half_a_budget_comes_out_of_the_whole() -> None:
    whole = Budget(1000, 400, 60.0)
    part = whole.half()
    assert (part.steps, part.per_query) == (500, 200)
    part.spend(300)
    whole.settle(part)
    assert whole.steps == 700
    assert part.left_ms() <= 30_000
