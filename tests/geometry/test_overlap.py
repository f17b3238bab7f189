"""One pair of patterns: the answer and the witness, against the bytes themselves."""

from __future__ import annotations

import pytest
from geometry_enumeration import bytes_of, patterns
from hypothesis import given, settings

from racefree.access import Dim, Pattern
from racefree.geometry import UNKNOWN, Witness, element_start, overlap_witness, overlaps, span


@settings(max_examples=600, deadline=None)
@given(patterns(), patterns())
def test_answer_and_witness_are_those_of_enumeration(a: Pattern, b: Pattern) -> None:
    shared = bytes_of(a) & bytes_of(b)
    assert overlaps(a, b) is bool(shared)
    witness = overlap_witness(a, b)
    if not shared:
        assert witness is None
        return
    assert isinstance(witness, Witness)
    assert witness.byte in shared
    for pattern, at in ((a, witness.a), (b, witness.b)):
        assert 0 <= witness.byte - element_start(pattern, at) < pattern.elem_bytes


@given(patterns())
def test_span_is_the_hull(a: Pattern) -> None:
    touched = bytes_of(a)
    assert span(a) == ((min(touched), max(touched) + 1) if touched else (a.base_bytes, a.base_bytes))


def test_a_residue_may_fall_between_elements() -> None:
    # The distance 2 is no multiple of the steps' common divisor 4, and yet the wide element covers the narrow one.
    a, b = Pattern(0, 4, (Dim(4, 2),)), Pattern(2, 2, (Dim(4, 2),))
    assert overlap_witness(a, b) == Witness((0,), (0,), 2)


def test_a_negative_step_of_the_far_side_reaches_back() -> None:
    # Only the last index of `b` comes down to `a`: a range clipped as if all steps were positive misses it.
    a, b = Pattern(0, 1), Pattern(9, 1, (Dim(-3, 4),))
    assert overlap_witness(a, b) == Witness((), (3,), 0)


def test_a_digit_past_its_bound_is_no_solution() -> None:
    # 100 * 2 would hit, but the index ends at 1; the remainder cannot be made up by the smaller step.
    a, b = Pattern(0, 1, (Dim(100, 2), Dim(7, 3))), Pattern(200, 1)
    assert overlaps(a, b) is False
    # The nearest multiple is within the bound, its remainder is not within the smaller term's.
    assert overlaps(Pattern(0, 1, (Dim(100, 3), Dim(7, 3))), Pattern(121, 1)) is False
    assert overlaps(Pattern(0, 1, (Dim(100, 3), Dim(7, 4))), Pattern(121, 1)) is True


def test_interleaved_columns_are_disjoint_and_a_shift_by_one_is_not() -> None:
    even = Pattern(0, 4, (Dim(256, 100), Dim(8, 16)))
    assert overlaps(even, Pattern(4, 4, even.dims)) is False
    assert overlaps(even, Pattern(5, 4, even.dims)) is True


def test_empty_patterns_touch_nothing() -> None:
    whole = Pattern(0, 8, (Dim(8, 100),))
    for empty in (Pattern(0, 8, (Dim(8, 0),)), Pattern(0, 0), Pattern(0, 4, (Dim(0, 3), Dim(4, 0)))):
        assert overlaps(whole, empty) is False
        assert overlap_witness(empty, whole) is None


def test_negative_counts_and_sizes_are_rejected() -> None:
    for wrong in (Pattern(0, 4, (Dim(4, -1),)), Pattern(0, -4)):
        with pytest.raises(ValueError, match="negative"):
            overlaps(wrong, Pattern(0, 1))


def test_addresses_beyond_64_bits_are_exact() -> None:
    far = 1 << 70
    a = Pattern(-far, 4, (Dim(far, 3), Dim(12, 1 << 40)))
    assert overlaps(a, Pattern(far + 4, 8)) is False
    assert overlap_witness(a, Pattern(far + 8, 8, ())) == Witness((2, 1), (), far + 12)


def test_no_search_at_all_still_answers_small_questions() -> None:
    a = Pattern(0, 1, (Dim(15, 9), Dim(21, 9), Dim(35, 9)))
    assert {byte: overlaps(a, Pattern(byte, 1), budget=0) for byte in (41, 71)} == {41: False, 71: True}
    assert overlap_witness(a, Pattern(71, 1), budget=0) is not UNKNOWN
