"""Each way to decide an equation agrees with enumeration, alone."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from racefree.geometry.bitset import bitset
from racefree.geometry.decide import solve
from racefree.geometry.equation import UNKNOWN, Equation
from racefree.geometry.halves import halves
from racefree.geometry.isl_process import IslProcess
from racefree.geometry.isl_solve import isl_solve
from racefree.geometry.reduction import Reduced, Term, reduce
from racefree.geometry.search import search

TERM = st.tuples(st.integers(-30, 60), st.integers(0, 4))
EQUATIONS = st.builds(Equation, st.lists(TERM, max_size=5).map(tuple), st.integers(-120, 400))


def solvable(equation: Equation) -> bool:
    return any(equation.holds(values) for values in product(*(range(bound + 1) for _, bound in equation.terms)))


def positive(equation: Equation) -> tuple[tuple[Term, ...], int]:
    """The equation as the methods take it, by dropping signs: another equation, but as good to test with."""
    terms = [(abs(step), bound) for step, bound in equation.terms if step and bound]
    ordered = sorted(terms, reverse=True)
    return tuple(Term(step, bound, i) for i, (step, bound) in enumerate(ordered)), abs(equation.target)


@settings(max_examples=200, deadline=None)
@given(EQUATIONS)
def test_reduction_keeps_the_answer_and_lifts_solutions(equation: Equation) -> None:
    reduced = reduce(equation)
    if not solvable(equation):
        assert reduced is None or search(reduced.terms, reduced.target, 10**6) is None
        return
    assert isinstance(reduced, Reduced)
    values = search(reduced.terms, reduced.target, 10**6)
    assert isinstance(values, list)
    assert equation.holds(reduced.lift(values))


@settings(max_examples=200, deadline=None)
@given(EQUATIONS)
@pytest.mark.parametrize("method", [lambda terms, target: search(terms, target, 10**6), bitset, halves])
def test_search_bitset_and_halves(method, equation: Equation) -> None:  # type: ignore[no-untyped-def]
    terms, target = positive(equation)
    asked = Equation(tuple((term.step, term.bound) for term in terms), target)
    values = method(terms, target)
    assert values is not UNKNOWN
    assert (values is not None) == solvable(asked)
    assert values is None or asked.holds(values)


def test_integer_sets_in_a_worker() -> None:
    process = IslProcess()

    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(EQUATIONS)
    def agrees(equation: Equation) -> None:
        terms, target = positive(equation)
        asked = Equation(tuple((term.step, term.bound) for term in terms), target)
        values = isl_solve(terms, target, process=process, seconds=30)
        assert values is not UNKNOWN
        assert (values is not None) == solvable(asked)
        assert values is None or asked.holds(values)

    try:
        agrees()
    finally:
        process.close()


def test_a_worker_that_is_too_slow_is_killed_and_started_again() -> None:
    process = IslProcess()
    terms = (Term(5, 3, 0), Term(3, 3, 1))
    try:
        assert isl_solve(terms, 8, process=process, seconds=0) is UNKNOWN
        assert isl_solve(terms, 8, process=process, seconds=30) == [1, 1]
        assert isl_solve(terms, 1, process=process, seconds=30) is None
    finally:
        process.close()


def test_a_search_out_of_nodes_does_not_answer() -> None:
    terms = (Term(35, 8, 0), Term(21, 8, 1), Term(15, 8, 2))
    assert search(terms, 41, 0) is UNKNOWN
    assert search(terms, 41, 100) is None


def test_methods_refuse_what_would_cost_too_much() -> None:
    wide = tuple(Term((1 << 40) + i, 1 << 20, i) for i in range(3))
    assert bitset(wide, 1 << 50) is UNKNOWN
    assert halves(wide, 1 << 50) is UNKNOWN


def test_superincreasing_steps_need_no_budget() -> None:
    # One digit per level, whatever the size: 60 levels with a budget of 60 nodes.
    steps = tuple((3**i * 1000003, 1) for i in range(60))
    target = sum(step for step, _ in steps[::2])
    assert solve(Equation(steps, target), 60) == tuple(1 - i % 2 for i in range(60))
    assert solve(Equation(steps, target + 1000003 * 3 * 2), 60) is None


def test_terms_collapse_only_without_a_gap() -> None:
    # 0, 1, 2 and 4, 5, 6: the sum 3 falls between. With one more unit the sums have no gap.
    assert solve(Equation(((1, 2), (4, 1)), 3)) is None
    assert solve(Equation(((1, 3), (4, 1)), 7)) == (3, 1)


def test_a_residue_past_the_bound_is_no_solution() -> None:
    assert reduce(Equation(((1, 2), (5, 3), (10, 4)), 3)) is None
    assert reduce(Equation(((1, 2), (5, 3), (10, 4)), 58)) is None
    assert reduce(Equation(((1, 2), (5, 3), (10, 4)), 33)) is None
    assert solve(Equation(((1, 3), (5, 3), (10, 4)), 58)) == (3, 3, 4)


def test_halves_do_not_trust_a_match_modulo_the_word() -> None:
    assert halves((Term((1 << 64) + 1, 1, 0),), 1) is UNKNOWN
    assert halves((Term((1 << 64) + 1, 1, 0),), (1 << 64) + 1) == [1]
    assert halves((Term((1 << 64) + 1, 1, 0),), 2) is None
