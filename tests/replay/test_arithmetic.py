"""Integer operations against their definition on Python integers, at several widths, undefined cases included."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from racefree.access import Site
from racefree.graph.program import Int, Op, Value
from racefree.proof.replay.arithmetic import elementwise
from racefree.proof.replay.lanes import Lanes, constant, signed_int, unknown

SITE = Site("k.py", 1)


def trunc_div(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def run(name: str, patterns: list[int | None], bits: int, result_bits: int, **attributes: str) -> int | None:
    values = [Value(i, Int(bits)) for i in range(len(patterns))]
    op = Op(name, (Value(9, Int(result_bits)),), tuple(values), attributes, SITE)
    operands = [unknown(()) if p is None else constant(p, v) for p, v in zip(patterns, values, strict=True)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = elementwise(op, operands)
    assert isinstance(result, Lanes)
    return result.scalar()


def both_signed(function: Callable[[int, int], int]) -> Callable[[int, int, int], int | None]:
    return lambda a, b, w: function(signed_int(a, w), signed_int(b, w))


def division(function: Callable[[int, int], int]) -> Callable[[int, int, int], int | None]:
    def value(a: int, b: int, w: int) -> int | None:
        left, right = signed_int(a, w), signed_int(b, w)
        if right == 0 or (w > 1 and left == -(1 << (w - 1)) and right == -1):
            return None
        return function(left, right)

    return value


MEANING: dict[str, Callable[[int, int, int], int | None]] = {
    "arith.addi": lambda a, b, w: a + b,
    "arith.subi": lambda a, b, w: a - b,
    "arith.muli": lambda a, b, w: a * b,
    "arith.andi": lambda a, b, w: a & b,
    "arith.ori": lambda a, b, w: a | b,
    "arith.xori": lambda a, b, w: a ^ b,
    "arith.shli": lambda a, b, w: a << b if b < w else None,
    "arith.shrui": lambda a, b, w: a >> b if b < w else None,
    "arith.shrsi": lambda a, b, w: signed_int(a, w) >> b if b < w else None,
    "arith.divui": lambda a, b, w: a // b if b else None,
    "arith.remui": lambda a, b, w: a % b if b else None,
    "arith.divsi": division(trunc_div),
    "arith.remsi": division(lambda a, b: a - b * trunc_div(a, b)),
    "arith.floordivsi": division(lambda a, b: a // b),
    "arith.ceildivsi": division(lambda a, b: -(-a // b)),
    "arith.ceildivui": lambda a, b, w: -(-a // b) if b else None,
    "arith.minsi": both_signed(min),
    "arith.maxsi": both_signed(max),
    "arith.minui": lambda a, b, w: min(a, b),
    "arith.maxui": lambda a, b, w: max(a, b),
    "tt.mulhiui": lambda a, b, w: (a * b) >> w,
}


@st.composite
def pairs(draw: st.DrawFn) -> tuple[int, int, int]:
    width = draw(st.sampled_from([8, 16, 32, 64]))
    edge = st.sampled_from([0, 1, 2, (1 << width) - 1, 1 << (width - 1), (1 << (width - 1)) - 1, width, width - 1])
    pattern = st.one_of(edge, st.integers(0, (1 << width) - 1))
    return draw(pattern), draw(pattern), width


@pytest.mark.parametrize("name", sorted(MEANING))
@settings(max_examples=60, deadline=None)
@given(pairs())
def test_binary_operations_follow_their_definition(name: str, pair: tuple[int, int, int]) -> None:
    left, right, width = pair
    meant = MEANING[name](left, right, width)
    expected = None if meant is None else meant % (1 << width)
    assert run(name, [left, right], width, width) == expected


COMPARE: dict[str, Callable[[int, int], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}


@pytest.mark.parametrize("name", sorted(COMPARE))
@settings(max_examples=40, deadline=None)
@given(pairs())
def test_comparisons_read_the_sign_from_the_predicate(name: str, pair: tuple[int, int, int]) -> None:
    left, right, width = pair
    assert run("arith.cmpi", [left, right], width, 1, predicate="u" + name) == COMPARE[name](left, right)
    signs = signed_int(left, width), signed_int(right, width)
    assert run("arith.cmpi", [left, right], width, 1, predicate="s" + name) == COMPARE[name](*signs)


def test_a_true_bit_is_minus_one_when_sign_extended_or_compared_signed() -> None:
    assert run("arith.extsi", [1], 1, 32) == 0xFFFFFFFF
    assert run("arith.extui", [1], 1, 32) == 1
    assert run("arith.cmpi", [1, 0], 1, 1, predicate="slt") == 1
    assert run("arith.cmpi", [1, 0], 1, 1, predicate="ult") == 0


def test_truncation_drops_high_bits_and_extension_keeps_the_sign() -> None:
    assert run("arith.trunci", [0x1_8000_0001], 64, 32) == 0x8000_0001
    assert run("arith.extsi", [0x8000_0001], 32, 64) == 0xFFFF_FFFF_8000_0001


@pytest.mark.parametrize(
    ("name", "patterns", "bits", "expected"),
    [
        ("arith.andi", [None, 0], 1, 0),
        ("arith.andi", [None, 1], 1, None),
        ("arith.ori", [1, None], 1, 1),
        ("arith.ori", [0, None], 1, None),
        ("arith.ori", [0xFF, None], 8, 0xFF),
        ("arith.muli", [None, 0], 32, 0),
        ("arith.addi", [None, 0], 32, None),
        ("arith.xori", [None, None], 1, None),
    ],
)
def test_unknown_operands(name: str, patterns: list[int | None], bits: int, expected: int | None) -> None:
    assert run(name, patterns, bits, bits) == expected


@pytest.mark.parametrize(
    ("condition", "then", "other", "expected"),
    [(1, 5, None, 5), (0, None, 6, 6), (1, None, 6, None), (None, 7, 7, 7), (None, 7, 8, None)],
)
def test_select_needs_only_the_arm_it_takes(
    condition: int | None, then: int | None, other: int | None, expected: int | None
) -> None:
    values = (Value(0, Int(1)), Value(1, Int(32)), Value(2, Int(32)))
    op = Op("arith.select", (Value(3, Int(32)),), values, {}, SITE)
    operands = [
        unknown(()) if p is None else constant(p, v) for p, v in zip((condition, then, other), values, strict=True)
    ]
    result = elementwise(op, operands)
    assert result is not None
    assert result.scalar() == expected
