"""Integer sets and Z3 against enumeration, on random conditions over a few small variables."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[1] / "smt"))
from evaluating import holds

from racefree.proof.affine import SetProver
from racefree.proof.affine.text import NotLinear, set_text
from racefree.proof.smt.budget import Budget
from racefree.proof.smt.solving import ask
from racefree.proof.symbolic.terms import (
    Condition,
    Fn,
    Relation,
    Sum,
    Var,
    VarKind,
    add,
    apply,
    both,
    choose,
    compare,
    either,
    negate,
    number,
    scale,
    variable,
)

NAMES = [Var(VarKind.PARAMETER, name, -3, 4) for name in "abc"]
PROVER = SetProver(answer_seconds=60)


@pytest.fixture(scope="module", autouse=True)
def _stop() -> Iterator[None]:
    yield
    PROVER.close()


def atoms() -> st.SearchStrategy[Sum]:
    return st.one_of(st.sampled_from([variable(v) for v in NAMES]), st.integers(-6, 6).map(number))


def _divided(function: Fn, left: Sum, divisor: int) -> Sum:
    return apply(function, left, number(divisor))


def sums() -> st.SearchStrategy[Sum]:
    return st.recursive(
        atoms(),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(add),
            st.tuples(inner, st.integers(-3, 3)).map(lambda x: scale(*x)),
            st.tuples(st.sampled_from((Fn.MIN, Fn.MAX)), inner, inner).map(lambda x: apply(*x)),
            st.tuples(st.sampled_from((Fn.FLOOR, Fn.MOD, Fn.DIV, Fn.REM)), inner, st.integers(1, 4)).map(
                lambda x: _divided(*x)
            ),
            st.tuples(inner, inner, inner).map(lambda x: choose(compare(Relation.LT, x[0], x[1]), x[2], x[0])),
        ),
        max_leaves=6,
    )


def conditions() -> st.SearchStrategy[Condition]:
    return st.recursive(
        st.tuples(st.sampled_from(Relation), sums(), sums()).map(lambda x: compare(*x)),
        lambda inner: st.one_of(
            st.tuples(inner, inner).map(lambda x: both(*x)),
            st.tuples(inner, inner).map(lambda x: either(*x)),
            inner.map(negate),
        ),
        max_leaves=4,
    )


def satisfiable(wanted: list[Condition]) -> bool:
    for point in itertools.product(range(-3, 5), repeat=3):
        values = dict(zip("abc", point, strict=True))
        if all(holds(c, values) for c in wanted):
            return True
    return False


@settings(max_examples=150, deadline=None)
@given(st.lists(conditions(), min_size=1, max_size=4))
def test_both_tools_agree_with_enumeration(wanted: list[Condition]) -> None:
    expected = satisfiable(wanted)
    assert PROVER.never(wanted) is not expected
    answer, model = ask(wanted, Budget(10_000_000, 5_000_000, 60.0))
    assert answer == ("sat" if expected else "unsat")
    if model is not None:
        values = {v.name: model.value(variable(v)) for v in NAMES}
        assert all(holds(c, values) for c in wanted)


def test_what_is_not_linear_passes() -> None:
    a, b = variable(NAMES[0]), variable(NAMES[1])
    product = compare(Relation.LT, apply(Fn.MUL, a, b), number(-1000))
    with pytest.raises(NotLinear):
        set_text([product])
    assert not PROVER.never([product])


def test_a_set_that_takes_too_long_is_no_proof_and_the_next_is_answered() -> None:
    quick = [compare(Relation.LT, variable(NAMES[0]), number(-3))]
    patient = SetProver(answer_seconds=60)
    try:
        assert patient.never(quick)
        assert patient._process is not None
        os.kill(patient._process.pid, signal.SIGSTOP)
        patient._answer_seconds = 0.05
        assert not patient.never(quick)
    finally:
        patient.close()
    assert PROVER.never(quick)
