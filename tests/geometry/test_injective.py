"""Two different index vectors of one pattern on one byte."""

from __future__ import annotations

from itertools import combinations

import pytest
from geometry_enumeration import elements, patterns
from hypothesis import given, settings
from hypothesis import strategies as st

from racefree.access import Dim, Pattern
from racefree.geometry import Witness, element_start, is_injective, self_overlap_witness


@settings(max_examples=300, deadline=None)
@given(patterns(max_dims=3), st.sets(st.integers(0, 2)) | st.none())
def test_answer_and_witness_are_those_of_enumeration(a: Pattern, chosen: set[int] | None) -> None:
    distinct = None if chosen is None else {i for i in chosen if i < len(a.dims)}
    where = range(len(a.dims)) if distinct is None else distinct
    expected = any(
        abs(start - other) < a.elem_bytes and any(at[i] != to[i] for i in where)
        for (at, start), (to, other) in combinations(elements(a), 2)
    )
    witness = self_overlap_witness(a, distinct=distinct)
    assert is_injective(a, distinct=distinct) is (not expected)
    if not expected:
        assert witness is None
        return
    assert isinstance(witness, Witness)
    assert any(witness.a[i] != witness.b[i] for i in where)
    for at in (witness.a, witness.b):
        assert 0 <= witness.byte - element_start(a, at) < a.elem_bytes


@pytest.mark.parametrize(
    ("pattern", "injective"),
    [
        (Pattern(0, 4, (Dim(4096, 1 << 30), Dim(4, 1024))), True),
        (Pattern(0, 4, (Dim(4096, 1 << 30), Dim(4, 1025))), False),
        (Pattern(0, 4, (Dim(3, 2),)), False),
        (Pattern(0, 4, (Dim(0, 2),)), False),
        (Pattern(0, 4, (Dim(0, 1),)), True),
        (Pattern(0, 4, (Dim(-4, 9), Dim(36, 2))), True),
    ],
)
def test_tiles_of_a_grid(pattern: Pattern, injective: bool) -> None:
    assert is_injective(pattern) is injective


def test_a_program_dim_may_be_asked_alone() -> None:
    # All programs write their own row, twice: no two programs meet, two lanes do.
    rows = Pattern(0, 4, (Dim(4096, 1 << 20), Dim(0, 2), Dim(4, 1024)))
    assert is_injective(rows, distinct=[0]) is True
    assert is_injective(rows) is False
