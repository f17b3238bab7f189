"""Memories with partitions: both coordinates must meet for the same indices."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racefree.access import Dim, Pattern
from racefree.geometry import (
    PlaneDim,
    PlanePattern,
    PlaneWitness,
    on_one_line,
    overlap_witness_2d,
    overlaps,
    overlaps_2d,
    rows_of_location,
)

Cells = set[tuple[int, int]]

PLANE_DIMS = st.builds(
    PlaneDim,
    st.sampled_from([-2, -1, 0, 0, 1, 2, 3]),
    st.sampled_from([-8, -4, -3, 0, 0, 1, 2, 4, 5, 8]),
    st.integers(0, 4) | st.integers(2, 4),
)
PLANES = st.builds(
    PlanePattern,
    st.integers(0, 6),
    st.integers(0, 30),
    st.sampled_from([1, 2, 3, 4]),
    st.lists(PLANE_DIMS, max_size=3).map(tuple),
)


def cells(pattern: PlanePattern) -> Cells:
    found = set()
    for at in product(*(range(dim.count) for dim in pattern.dims)):
        partition = pattern.partition + sum(k * d.partition_step for k, d in zip(at, pattern.dims, strict=True))
        byte = pattern.base_bytes + sum(k * d.step_bytes for k, d in zip(at, pattern.dims, strict=True))
        found.update((partition, byte + x) for x in range(pattern.elem_bytes))
    return found


def cell(pattern: PlanePattern, at: tuple[int, ...]) -> Cells:
    fixed = PlanePattern(pattern.partition, pattern.base_bytes, pattern.elem_bytes)
    partition = sum(k * d.partition_step for k, d in zip(at, pattern.dims, strict=True))
    byte = sum(k * d.step_bytes for k, d in zip(at, pattern.dims, strict=True))
    return {(p + partition, b + byte) for p, b in cells(fixed)}


@settings(max_examples=150, deadline=None)
@given(PLANES, PLANES)
def test_answer_and_witness_are_those_of_enumeration(a: PlanePattern, b: PlanePattern) -> None:
    shared = cells(a) & cells(b)
    assert overlaps_2d(a, b) is bool(shared)
    witness = overlap_witness_2d(a, b)
    if not shared:
        assert witness is None
        return
    assert isinstance(witness, PlaneWitness)
    assert (witness.partition, witness.byte) in cell(a, witness.a) & cell(b, witness.b)


@settings(max_examples=150, deadline=None)
@given(PLANES, PLANES)
def test_one_line_keeps_the_answer(a: PlanePattern, b: PlanePattern) -> None:
    lines = []
    for pattern in (a, b):
        inside = all(0 <= byte < 48 for _, byte in cells(pattern))
        if not inside:
            with pytest.raises(ValueError, match="leave a partition"):
                on_one_line(pattern, pitch_bytes=48)
            return
        lines.append(on_one_line(pattern, pitch_bytes=48))
    assert overlaps(*lines) is bool(cells(a) & cells(b))


def test_diagonals_that_cross_on_each_axis_do_not_meet() -> None:
    # Partition i with column i, and partition i with column i + 1: each axis meets on its own, no cell does.
    a = PlanePattern(0, 0, 1, (PlaneDim(1, 1, 8),))
    b = PlanePattern(0, 1, 1, (PlaneDim(1, 1, 8),))
    assert overlaps(a.partition_axis(), b.partition_axis()) is True
    assert overlaps(a.bytes_axis(), b.bytes_axis()) is True
    assert overlaps_2d(a, b) is False


def test_quadrants_with_one_byte_address_are_apart() -> None:
    low = PlanePattern(0, 64, 4, (PlaneDim(1, 0, 32), PlaneDim(0, 4, 16)))
    high = PlanePattern(32, 64, 4, low.dims)
    assert overlaps_2d(low, high) is False
    assert overlap_witness_2d(low, PlanePattern(31, 64, 4, low.dims)) == PlaneWitness((31, 0), (0, 0), 31, 64)


@settings(max_examples=200, deadline=None)
@given(
    st.integers(1, 40),
    st.integers(0, 90),
    st.sampled_from([1, 2, 4]),
    st.lists(st.builds(Dim, st.integers(-60, 60), st.integers(1, 5)), max_size=3).map(tuple),
)
def test_rows_of_a_location(row_bytes: int, offset: int, elem: int, dims: tuple[Dim, ...]) -> None:
    parts = rows_of_location(
        partition=32, base_bytes=1000, row_bytes=row_bytes, offset_bytes=offset, elem_bytes=elem, dims=dims
    )
    assert parts is not None
    expected = set()
    for at in product(*(range(dim.count) for dim in dims)):
        start = offset + sum(k * dim.step_bytes for k, dim in zip(at, dims, strict=True))
        for x in range(elem):
            row, column = divmod(start + x, row_bytes)
            expected.add((32 + row, 1000 + column))
    assert set().union(*(cells(part) for part in parts)) == expected


def test_a_tile_within_its_rows_is_one_pattern() -> None:
    dims = (Dim(2048, 128), Dim(4, 512))
    parts = rows_of_location(partition=0, base_bytes=64, row_bytes=2048, offset_bytes=0, elem_bytes=4, dims=dims)
    assert parts == (PlanePattern(0, 64, 4, (PlaneDim(1, 0, 128), PlaneDim(0, 4, 512))),)


def test_a_shifted_tile_is_one_pattern_and_too_many_parts_are_none() -> None:
    shifted = (Dim(2052, 128), Dim(4, 16))
    parts = rows_of_location(partition=0, base_bytes=0, row_bytes=2048, offset_bytes=0, elem_bytes=4, dims=shifted)
    assert parts == (PlanePattern(0, 0, 4, (PlaneDim(1, 4, 128), PlaneDim(0, 4, 16))),)
    ragged = (Dim(700, 1000),)
    assert (
        rows_of_location(partition=0, base_bytes=0, row_bytes=1024, offset_bytes=0, elem_bytes=4, dims=ragged, limit=10)
        is None
    )


def test_an_access_without_elements_has_no_parts() -> None:
    parts = rows_of_location(partition=0, base_bytes=0, row_bytes=64, offset_bytes=0, elem_bytes=4, dims=(Dim(4, 0),))
    assert parts == ()
    assert Pattern(0, 4, (Dim(4, 0),)).dims[0].count == 0
