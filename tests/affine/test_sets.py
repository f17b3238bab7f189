"""Integer sets and Z3 against enumeration, on random conditions over a few small variables."""

from __future__ import annotations

import itertools
import os
import signal
from collections.abc import Iterator, Sequence

import pytest
from evaluating import holds
from hypothesis import given, settings
from hypothesis import strategies as st

from racefree.geometry.isl_process import IslProcess
from racefree.proof.affine import SetProver
from racefree.proof.smt.budget import Budget
from racefree.proof.smt.solving import ask
from racefree.proof.symbolic.replacing import leaves
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
PROCESS = IslProcess()
PROVER = SetProver(PROCESS, answer_seconds=60)


@pytest.fixture(scope="module", autouse=True)
def _stop() -> Iterator[None]:
    yield
    PROCESS.close()


def atoms(names: Sequence[Var]) -> st.SearchStrategy[Sum]:
    return st.one_of(st.sampled_from([variable(v) for v in names]), st.integers(-6, 6).map(number))


def _divided(function: Fn, left: Sum, divisor: int) -> Sum:
    return apply(function, left, number(divisor))


def sums(names: Sequence[Var]) -> st.SearchStrategy[Sum]:
    return st.recursive(
        atoms(names),
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
    return conditions_of(NAMES)


def conditions_of(names: Sequence[Var]) -> st.SearchStrategy[Condition]:
    return st.recursive(
        st.tuples(st.sampled_from(Relation), sums(names), sums(names)).map(lambda x: compare(*x)),
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


# ---- what is not linear ----------------------------------------------------------------------------------------------

SIZE, COUNT = (Var(VarKind.PARAMETER, name, -1, 2) for name in ("size", "count"))
ROW, COLUMN, OTHER_ROW, OTHER_COLUMN = (
    Var(VarKind.PROGRAM, name, -1, 2) for name in ("row@1", "column@1", "row@2", "column@2")
)
MIXED = (SIZE, COUNT, ROW, COLUMN, OTHER_ROW, OTHER_COLUMN)


def products() -> st.SearchStrategy[Sum]:
    plain = st.one_of(st.sampled_from([variable(v) for v in MIXED]), st.integers(-3, 3).map(number))
    by = st.sampled_from([variable(SIZE), variable(COUNT), apply(Fn.MUL, variable(SIZE), variable(COUNT))])
    return st.one_of(
        plain,
        st.tuples(by, plain).map(lambda x: apply(Fn.MUL, *x)),
        st.tuples(st.sampled_from((Fn.DIV, Fn.REM)), plain, st.sampled_from([SIZE, ROW])).map(
            lambda x: apply(x[0], x[1], variable(x[2]))
        ),
        st.tuples(st.sampled_from((Fn.MIN, Fn.MAX)), plain, plain).map(lambda x: apply(*x)),
    )


def equations() -> st.SearchStrategy[Condition]:
    weighted = st.tuples(products(), st.sampled_from((-2, -1, 1, 1, 3))).map(lambda x: scale(*x))
    polynomial = st.lists(weighted, min_size=1, max_size=4).map(add)
    return st.tuples(st.sampled_from((Relation.EQ, Relation.EQ, *Relation)), polynomial, products()).map(
        lambda x: compare(*x)
    )


def values_of(names: Sequence[Var]) -> Iterator[dict[str, int]]:
    for point in itertools.product(*(range(v.low or 0, (v.high or 0) + 1) for v in names)):
        yield dict(zip((v.name for v in names), point, strict=True))


def possible(wanted: Sequence[Condition], *, by_zero: bool) -> bool:
    """Whether some values satisfy the conditions. A division by 0 has no value: `by_zero` is what it answers."""
    used = [leaf for leaf in MIXED if any(leaf == other for other in leaves(*wanted))]
    for values in values_of(used):
        try:
            if all(holds(c, values) for c in wanted):
                return True
        except AssertionError:
            if by_zero:
                return True
    return False


@settings(max_examples=250, deadline=None)
@given(st.lists(st.one_of(equations(), equations(), conditions_of(MIXED)), min_size=1, max_size=4))
def test_what_is_not_linear_is_never_ruled_out_wrongly(wanted: list[Condition]) -> None:
    found, _ = PROVER.ask(wanted)
    assert found != "empty" or not possible(wanted, by_zero=False)
    assert found != "inhabited" or possible(wanted, by_zero=True)


def between(low: int, value: Sum, high: Sum) -> list[Condition]:
    return [compare(Relation.LE, number(low), value), compare(Relation.LT, value, high)]


def cell(row: Var, column: Var, pitch: Sum) -> Sum:
    return add((apply(Fn.MUL, pitch, variable(row)), variable(column)))


@pytest.mark.parametrize("width", [SIZE, COUNT])
@pytest.mark.parametrize("low", [0, -1])
def test_rows_of_a_symbolic_pitch(width: Var, low: int) -> None:
    """Two cells are one only if row and column agree, where columns stay below the pitch."""
    same = compare(Relation.EQ, cell(ROW, COLUMN, variable(SIZE)), cell(OTHER_ROW, OTHER_COLUMN, variable(SIZE)))
    masks = [*between(low, variable(COLUMN), variable(width)), *between(low, variable(OTHER_COLUMN), variable(width))]
    apart = compare(Relation.NE, variable(ROW), variable(OTHER_ROW))
    clean = width is SIZE and low == 0
    assert PROVER.never([same, *masks, apart]) is clean
    assert possible([same, *masks, apart], by_zero=False) is not clean


@pytest.mark.parametrize("inner", [True, False])
def test_three_symbolic_dimensions(inner: bool) -> None:
    """`(row*count + column)*size + lane`: each digit has to stay below its own extent."""
    lane, other_lane = (Var(VarKind.LANE, f"lane@{k}", 0, 3) for k in (1, 2))
    sides = ((ROW, COLUMN, lane), (OTHER_ROW, OTHER_COLUMN, other_lane))
    addresses = [add((apply(Fn.MUL, variable(SIZE), cell(r, c, variable(COUNT))), variable(k))) for r, c, k in sides]
    masks = [m for _, c, _ in sides for m in between(0, variable(c), variable(COUNT))]
    if inner:
        masks += [m for _, _, k in sides for m in between(0, variable(k), variable(SIZE))]
    apart = compare(Relation.NE, variable(ROW), variable(OTHER_ROW))
    assert PROVER.never([compare(Relation.EQ, *addresses), *masks, apart]) is inner


@pytest.mark.parametrize("positive", [True, False])
@pytest.mark.parametrize("remainder", [True, False])
def test_quotient_and_remainder_tell_dividends_apart(positive: bool, remainder: bool) -> None:
    same = [compare(Relation.EQ, *(apply(Fn.DIV, variable(v), variable(SIZE)) for v in (ROW, OTHER_ROW)))]
    if remainder:
        same.append(compare(Relation.EQ, *(apply(Fn.REM, variable(v), variable(SIZE)) for v in (ROW, OTHER_ROW))))
    apart = compare(Relation.LT, variable(ROW), variable(OTHER_ROW))
    first = [compare(Relation.LE, number(0), variable(v)) for v in (ROW, OTHER_ROW)]
    first += [compare(Relation.LE, number(1), variable(SIZE))] if positive else []
    assert PROVER.never([*same, *first, apart]) is (positive and remainder)


def test_a_divisor_of_few_values_is_taken_value_by_value() -> None:
    """The last group of a swizzle may be smaller: dividing by its size still tells its programs apart."""
    size = apply(Fn.MIN, add((variable(COUNT), scale(variable(OTHER_ROW), -1))), number(2))
    split = [(apply(Fn.DIV, variable(v), size), apply(Fn.REM, variable(v), size)) for v in (ROW, COLUMN)]
    same = [compare(Relation.EQ, a, b) for a, b in zip(*split, strict=True)]
    apart = compare(Relation.LT, variable(ROW), variable(COLUMN))
    first = [compare(Relation.LE, number(0), variable(ROW)), compare(Relation.LT, number(0), size)]
    assert PROVER.never([*same, *first, apart])
    assert not PROVER.never([same[1], *first, apart])


# ---- the process -----------------------------------------------------------------------------------------------------


def test_a_set_that_takes_too_long_is_no_proof_and_the_next_is_answered() -> None:
    quick = [compare(Relation.LT, variable(NAMES[0]), number(-3))]
    slow = [compare(Relation.LT, variable(NAMES[1]), number(-4))]
    process = IslProcess()
    patient = SetProver(process, answer_seconds=60)
    try:
        assert patient.never(quick)
        assert process.pid is not None
        os.kill(process.pid, signal.SIGSTOP)
        assert patient.never(quick)  # remembered
        assert not patient.never(slow, seconds=0.05)
        assert patient.never(slow)
    finally:
        process.close()


def test_a_spent_budget_asks_nothing() -> None:
    assert not PROVER.never([compare(Relation.LT, variable(NAMES[2]), number(-3))], seconds=0.0)
