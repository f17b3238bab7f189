"""Two patterns on one byte at different values of an index they share."""

from __future__ import annotations

from itertools import product

import pytest
from geometry_enumeration import elements, patterns
from hypothesis import given, settings
from hypothesis import strategies as st

from racefree.access import Dim, Pattern
from racefree.geometry import Witness, distinct_overlap_witness, element_start, self_overlap_witness

STEPS = st.sampled_from([-24, -9, -8, -3, -1, 0, 1, 2, 4, 5, 8, 12, 16, 40])


@st.composite
def accesses(draw: st.DrawFn) -> tuple[Pattern, Pattern, list[tuple[int, int]]]:
    """Two patterns with up to two shared dims, put first in `a` and last in `b`."""
    counts = draw(st.lists(st.integers(0, 5) | st.integers(2, 5), max_size=2))
    grids = [tuple(Dim(draw(STEPS), count) for count in counts) for _ in range(2)]
    a, b = draw(patterns(max_dims=1)), draw(patterns(max_dims=1))
    shared = [(i, len(b.dims) + i) for i in range(len(counts))]
    a = Pattern(a.base_bytes, a.elem_bytes, (*grids[0], *a.dims))
    return a, Pattern(b.base_bytes, b.elem_bytes, (*b.dims, *grids[1])), shared


@settings(max_examples=300, deadline=None)
@given(accesses())
def test_answer_and_witness_are_those_of_enumeration(question: tuple[Pattern, Pattern, list[tuple[int, int]]]) -> None:
    a, b, shared = question
    expected = any(
        max(start, other) < min(start + a.elem_bytes, other + b.elem_bytes) and any(at[i] != to[j] for i, j in shared)
        for (at, start), (to, other) in product(elements(a), elements(b))
    )
    witness = distinct_overlap_witness(a, b, shared=shared)
    if not expected:
        assert witness is None
        return
    assert isinstance(witness, Witness)
    assert any(witness.a[i] != witness.b[j] for i, j in shared)
    for pattern, at in ((a, witness.a), (b, witness.b)):
        assert 0 <= witness.byte - element_start(pattern, at) < pattern.elem_bytes


def test_a_million_programs_are_one_question() -> None:
    # Each program reads its own row and writes the row's last element, then the next row's first.
    programs, row = Dim(4096, 1 << 20), Dim(4, 1024)
    read = Pattern(0, 4, (programs, row))
    own = Pattern(4092, 4, (programs,))
    following = Pattern(4096, 4, (programs,))
    assert distinct_overlap_witness(read, own, shared=[(0, 0)]) is None
    assert distinct_overlap_witness(read, following, shared=[(0, 0)]) == Witness((1, 0), (0,), 4096)
    assert self_overlap_witness(read, distinct=[0]) is None


def test_different_strides_of_a_shared_index_are_exact() -> None:
    # Program p writes byte 2 p and reads byte 3 p: bytes 6 q are read by 2 q and written by 3 q.
    write, read = Pattern(0, 1, (Dim(2, 1000),)), Pattern(0, 1, (Dim(3, 1000),))
    found = distinct_overlap_witness(write, read, shared=[(0, 0)])
    assert isinstance(found, Witness)
    assert 2 * found.a[0] == 3 * found.b[0] == found.byte > 0
    # Program p writes byte 2 p and reads byte 3 p - p: always its own.
    assert distinct_overlap_witness(write, write, shared=[(0, 0)]) is None


def test_dims_that_cannot_be_one_index_are_rejected() -> None:
    a, b = Pattern(0, 1, (Dim(1, 4), Dim(8, 4))), Pattern(0, 1, (Dim(1, 5), Dim(8, 4)))
    with pytest.raises(ValueError, match="counts 4 and 5"):
        distinct_overlap_witness(a, b, shared=[(0, 0)])
    with pytest.raises(ValueError, match="twice"):
        distinct_overlap_witness(a, b, shared=[(0, 1), (1, 1)])
