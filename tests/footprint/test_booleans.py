"""Comparisons, boolean algebra and selection: every cell's answer stays inside what the operands leave possible."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_values import Drawing, bounds_of, possible, spread, unsigned

from racefree.proof.footprint.logic import (
    compare,
    compare_truths,
    conjunction,
    disjunction,
    exclusive_or,
    negate,
    number_of,
    select,
    truth_of,
)
from racefree.proof.footprint.values import Affine, Truth

SEEDS = st.integers(0, 1 << 32)
PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


def holds(predicate: str, a: int, b: int, bits: int) -> bool:
    if predicate.startswith("u"):
        a, b = unsigned(a, bits), unsigned(b, bits)
    return {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}[predicate.lstrip("us")]


def agrees(drawn: Drawing, out: Truth, answers: Callable[[tuple[int, ...]], set[bool]], *, exact: bool) -> None:
    """Every answer a cell could have lies between `must` and `may`; with exact operands there is one, and it is told."""
    may, must = bounds_of(out, drawn.frame, drawn.shape)
    assert not (must & ~may).any()
    for cell in np.ndindex(drawn.whole):
        allowed = set(possible(bool(may[cell]), bool(must[cell])))
        assert answers(cell) <= allowed
        if exact:
            assert allowed == answers(cell)
    if exact:
        assert out.exact


@pytest.mark.parametrize("predicate", PREDICATES)
@given(seed=SEEDS)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_comparisons_of_numbers(predicate: str, seed: int) -> None:
    drawn = Drawing(seed)
    left, right = drawn.value(), drawn.value()
    a, a_known = spread(left, drawn.frame, drawn.shape)
    b, b_known = spread(right, drawn.frame, drawn.shape)

    def answers(cell: tuple[int, ...]) -> set[bool]:
        sure = a_known[cell] and b_known[cell]
        return {holds(predicate, int(a[cell]), int(b[cell]), drawn.bits)} if sure else {True, False}

    exact = all(isinstance(v, Affine) or v.known is None for v in (left, right))
    agrees(drawn, compare(predicate, left, right, drawn.bits, drawn.frame, drawn.shape), answers, exact=exact)


ALGEBRA: dict[str, tuple[object, Callable[[bool, bool], bool]]] = {
    "and": (conjunction, lambda a, b: a and b),
    "or": (disjunction, lambda a, b: a or b),
    "xor": (exclusive_or, lambda a, b: a != b),
}


@pytest.mark.parametrize("name", [*ALGEBRA, *PREDICATES])
@given(seed=SEEDS)
@settings(max_examples=80, deadline=None, derandomize=True)
def test_operations_on_two_booleans(name: str, seed: int) -> None:
    drawn = Drawing(seed)
    left, right = drawn.truth(), drawn.truth()
    if name in ALGEBRA:
        combine, meaning = ALGEBRA[name]
        out = combine(left, right, drawn.frame, drawn.shape)  # type: ignore[operator]
    else:
        out = compare_truths(name, left, right, drawn.frame, drawn.shape)

        def meaning(a: bool, b: bool) -> bool:
            return holds(name, -int(a), -int(b), 1)  # true is -1 signed and 1 unsigned

    a_may, a_must = bounds_of(left, drawn.frame, drawn.shape)
    b_may, b_must = bounds_of(right, drawn.frame, drawn.shape)

    def answers(cell: tuple[int, ...]) -> set[bool]:
        first, second = possible(a_may[cell], a_must[cell]), possible(b_may[cell], b_must[cell])
        return {meaning(x, y) for x, y in product(first, second)}

    agrees(drawn, out, answers, exact=left.exact and right.exact)


@given(seed=SEEDS)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_negation_and_conversions(seed: int) -> None:
    drawn = Drawing(seed)
    truth = drawn.truth()
    may, must = bounds_of(truth, drawn.frame, drawn.shape)
    negated = negate(truth, drawn.frame, drawn.shape)
    agrees(drawn, negated, lambda c: {not x for x in possible(may[c], must[c])}, exact=truth.exact)
    for one in (1, -1):
        cells, known = spread(number_of(truth, one, drawn.frame, drawn.shape), drawn.frame, drawn.shape)  # type: ignore[arg-type]
        assert (known == ~(may ^ must)).all()
        assert (cells[known] == np.where(must, one, 0)[known]).all()
    value = drawn.value()
    numbers, sure = spread(value, drawn.frame, drawn.shape)
    exact = isinstance(value, Affine) or value.known is None
    lowest = truth_of(value, drawn.frame, drawn.shape)
    agrees(drawn, lowest, lambda c: {bool(numbers[c] & 1)} if sure[c] else {True, False}, exact=exact)


@given(seed=SEEDS)
@settings(max_examples=250, deadline=None, derandomize=True)
def test_selection_of_numbers(seed: int) -> None:
    drawn = Drawing(seed)
    condition, left, right = drawn.truth(), drawn.value(), drawn.value()
    out = select(condition, left, right, drawn.frame, drawn.shape)
    assert not isinstance(out, Truth)
    may, must = bounds_of(condition, drawn.frame, drawn.shape)
    a, a_known = spread(left, drawn.frame, drawn.shape)
    b, b_known = spread(right, drawn.frame, drawn.shape)
    cells, known = spread(out, drawn.frame, drawn.shape)
    for cell in np.ndindex(drawn.whole):
        sides = [(a, a_known) if x else (b, b_known) for x in possible(may[cell], must[cell])]
        if known[cell]:
            assert all(sure[cell] and data[cell] == cells[cell] for data, sure in sides)
        elif condition.exact:
            assert not any(sure[cell] for _, sure in sides)


@given(seed=SEEDS)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_selection_of_booleans(seed: int) -> None:
    drawn = Drawing(seed)
    truths = [drawn.truth() for _ in range(3)]
    out = select(*truths, drawn.frame, drawn.shape)  # type: ignore[call-arg, arg-type]
    assert isinstance(out, Truth)
    ranges = [bounds_of(t, drawn.frame, drawn.shape) for t in truths]

    def answers(cell: tuple[int, ...]) -> set[bool]:
        condition, left, right = (possible(may[cell], must[cell]) for may, must in ranges)
        return {a if c else b for c, a, b in product(condition, left, right)}

    agrees(drawn, out, answers, exact=all(t.exact for t in truths))
