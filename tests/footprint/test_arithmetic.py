"""Integer handlers against plain Python integers, cell by cell, at the real width."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_values import SITE, Drawing, reduce_to, spread, unsigned

from racefree.proof.footprint.arith import BINARY, truncate, zero_extend
from racefree.proof.footprint.values import Affine, Dense, Frame, Unknown, by_row, value_range

SEEDS = st.integers(0, 1 << 32)
Exact = Callable[[int, int, int], int | None]


def toward_zero(a: int, b: int, bits: int) -> int | None:
    if b == 0 or (a == -(1 << (bits - 1)) and b == -1):
        return None
    size = abs(a) // abs(b)
    return -size if (a < 0) != (b < 0) else size


def remainder(a: int, b: int, bits: int) -> int | None:
    quotient = toward_zero(a, b, bits)
    return None if quotient is None else a - quotient * b


def rounded(a: int, b: int, bits: int, *, up: bool) -> int | None:
    if toward_zero(a, b, bits) is None:
        return None
    return -((-a) // b) if up else a // b


def shifted(a: int, b: int, bits: int, how: str) -> int | None:
    if not 0 <= b < bits:
        return None
    if how == "left":
        return a << b
    return (a if how == "signed" else unsigned(a, bits)) >> b


EXACT: dict[str, Exact] = {
    "arith.addi": lambda a, b, _: a + b,
    "arith.subi": lambda a, b, _: a - b,
    "arith.muli": lambda a, b, _: a * b,
    "arith.divsi": toward_zero,
    "arith.divui": lambda a, b, n: unsigned(a, n) // unsigned(b, n) if b else None,
    "arith.remsi": remainder,
    "arith.remui": lambda a, b, n: unsigned(a, n) % unsigned(b, n) if b else None,
    "arith.ceildivsi": lambda a, b, n: rounded(a, b, n, up=True),
    "arith.floordivsi": lambda a, b, n: rounded(a, b, n, up=False),
    "arith.andi": lambda a, b, _: a & b,
    "arith.ori": lambda a, b, _: a | b,
    "arith.xori": lambda a, b, _: a ^ b,
    "arith.shli": lambda a, b, n: shifted(a, b, n, "left"),
    "arith.shrsi": lambda a, b, n: shifted(a, b, n, "signed"),
    "arith.shrui": lambda a, b, n: shifted(a, b, n, "unsigned"),
    "arith.maxsi": lambda a, b, _: max(a, b),
    "arith.minsi": lambda a, b, _: min(a, b),
    "arith.maxui": lambda a, b, n: max(a, b, key=lambda x: unsigned(x, n)),
    "arith.minui": lambda a, b, n: min(a, b, key=lambda x: unsigned(x, n)),
    "tt.mulhiui": lambda a, b, n: (unsigned(a, n) * unsigned(b, n)) >> n,
}


def test_every_handler_has_an_exact_meaning_here() -> None:
    assert EXACT.keys() == BINARY.keys()


@pytest.mark.parametrize("name", sorted(BINARY))
@given(seed=SEEDS)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_binary_handlers_equal_exact_arithmetic(name: str, seed: int) -> None:
    drawn = Drawing(seed)
    frame, shape, bits = drawn.frame, drawn.shape, drawn.bits
    left, right = drawn.value(), drawn.value()
    a, a_known = spread(left, frame, shape)
    b, b_known = spread(right, frame, shape)
    with np.errstate(over="ignore"):
        out, known = spread(BINARY[name](left, right, bits, frame, shape), frame, shape)
    for cell in np.ndindex(a.shape):
        exact = EXACT[name](int(a[cell]), int(b[cell]), bits) if a_known[cell] and b_known[cell] else None
        assert bool(known[cell]) == (exact is not None)
        if exact is not None:
            assert int(out[cell]) == reduce_to(exact, bits)


@pytest.mark.parametrize("name", sorted(BINARY))
def test_an_unknown_operand_makes_an_unknown_result(name: str) -> None:
    frame = Frame(1, (), 1 << 10)
    unknown, one = Unknown("asked", SITE), Affine(np.ones(1, np.int64), (1,))
    assert BINARY[name](unknown, one, 32, frame, (4,)) is unknown
    assert BINARY[name](one, unknown, 32, frame, (4,)) is unknown


# The forms real kernels use stay affine: without this the rung would be exact and useless.
STAYS_AFFINE = [
    ("arith.divsi", (64, 1), 64, 64),
    ("arith.remsi", (128, 1), 64, 64),
    ("arith.divui", (640, 2), 128, 64),
    ("arith.remsi", (3, 64), 64, 16),
    ("arith.shrsi", (1 << 20, 4), 3, 2),
    ("arith.shli", (5, 3), 4, 32),
    ("arith.andi", (256, 1), 63, 64),
    ("arith.ori", (1 << 10, 1), 1 << 11, 64),
    ("arith.maxsi", (100, 1), 5, 8),
    ("arith.minsi", (100, 1), 5, 8),
    ("arith.muli", (100, 7), -3, 8),
]


@pytest.mark.parametrize(("name", "left", "right", "extent"), STAYS_AFFINE)
def test_common_forms_stay_affine(name: str, left: tuple[int, int], right: int, extent: int) -> None:
    frame = Frame(1, (), 1 << 10)
    value = Affine(np.array([left[0]], np.int64), (left[1],))
    constant = Affine(np.array([right], np.int64), (0,))
    out = BINARY[name](value, constant, 32, frame, (extent,))
    assert isinstance(out, Affine)


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_changes_of_width(seed: int) -> None:
    drawn = Drawing(seed)
    frame, shape, bits = drawn.frame, drawn.shape, drawn.bits
    value = drawn.value()
    cells, known = spread(value, frame, shape)
    narrow = drawn.random.choice([n for n in (8, 16, 32, 64) if n <= bits])
    cut, cut_known = spread(truncate(value, narrow, frame, shape), frame, shape)
    wide, wide_known = spread(zero_extend(value, bits, frame, shape), frame, shape)
    assert (cut_known == known).all()
    assert (wide_known == known).all()
    for cell in np.ndindex(cells.shape):
        if known[cell]:
            assert int(cut[cell]) == reduce_to(int(cells[cell]), narrow)
            assert int(wide[cell]) == reduce_to(unsigned(int(cells[cell]), bits), 64)


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_range_of_an_affine_value_is_its_smallest_and_largest_cell(seed: int) -> None:
    drawn = Drawing(seed, bits=32)
    value = drawn.affine()
    if isinstance(value, Dense):
        return
    cells, _ = spread(value, drawn.frame, drawn.shape)
    low, high = (np.broadcast_to(x, drawn.frame.rows) for x in value_range(value, drawn.frame.extents(drawn.shape)))
    flat = cells.reshape(drawn.frame.rows, -1)
    assert low.tolist() == flat.min(axis=1).tolist()
    assert high.tolist() == flat.max(axis=1).tolist()


@settings(max_examples=200)
@given(SEEDS)
def test_a_value_by_row_is_the_same_in_every_cell(seed: int) -> None:
    drawing = Drawing(seed)
    before = drawing.dense()
    after = by_row(before)
    told_before, told_after = (spread(v, drawing.frame, drawing.shape) for v in (before, after))
    assert all((a == b).all() for a, b in zip(told_before, told_after, strict=True))
    assert isinstance(after, Affine) == (before.known is None and before.data[0].size == 1)
