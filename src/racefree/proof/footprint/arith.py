"""Integer arithmetic on launch values at its real width: affine where that is exact, cell by cell otherwise."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from racefree.proof.footprint.values import (
    I64,
    Affine,
    Bits,
    Coef,
    Dense,
    Frame,
    Number,
    Unknown,
    densify,
    fits_int64,
    guard_cells,
    is_zero,
    tidy,
    uniform,
    unsigned_cells,
    value_range,
    wrap_cells,
    wrapped,
)

Shape = tuple[int, ...]
Binary = Callable[[Number, Number, int, Frame, Shape], Number]


def _both(left: Bits | None, right: Bits | None) -> Bits | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _cells(left: Affine | Dense, right: Affine | Dense, frame: Frame, shape: Shape) -> tuple[I64, I64, Bits | None]:
    a, b = densify(left, frame, shape), densify(right, frame, shape)
    guard_cells(np.broadcast_shapes(a.data.shape, b.data.shape), frame)
    return a.data, b.data, _both(a.known, b.known)


def _combine(sign: int) -> Binary:
    def run(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        if isinstance(left, Affine) and isinstance(right, Affine):
            extents = frame.extents(shape)
            if fits_int64(left, extents) and fits_int64(right, extents):
                coefs = tuple(_add(a, b, sign) for a, b in zip(left.coefs, right.coefs, strict=True))
                return wrapped(Affine(left.base + sign * right.base, coefs), bits, frame, shape)
        a, b, known = _cells(left, right, frame, shape)
        with np.errstate(over="ignore"):
            return Dense(wrap_cells(a + sign * b, bits), known)

    return run


def _add(a: Coef, b: Coef, sign: int) -> Coef:
    if isinstance(a, int) and isinstance(b, int):
        return a + sign * b
    return tidy(np.asarray(a, dtype=np.int64) + sign * np.asarray(b, dtype=np.int64))


add = _combine(1)
sub = _combine(-1)


def scaled(value: Affine, factor: I64) -> Affine:
    """value * factor, with one factor per row; the caller checks the range."""
    return Affine(value.base * factor, tuple(0 if is_zero(c) else tidy(c * factor) for c in value.coefs))


def mul(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return left if isinstance(left, Unknown) else right
    if isinstance(left, Affine) and isinstance(right, Affine):
        if uniform(left):
            left, right = right, left
        if uniform(right) and _product_fits(left, right, frame.extents(shape)):
            return wrapped(scaled(left, right.base), bits, frame, shape)
    a, b, known = _cells(left, right, frame, shape)
    with np.errstate(over="ignore"):
        return Dense(wrap_cells(a * b, bits), known)


def _product_fits(value: Affine, factor: Affine, extents: tuple[int, ...]) -> bool:
    if not fits_int64(value, extents):
        return False
    low, high = value_range(value, extents)
    reach = max(float(np.abs(low.astype(np.float64)).max()), float(np.abs(high.astype(np.float64)).max()))
    spread = sum(
        float(np.abs(np.asarray(c, dtype=np.float64)).max()) * n for c, n in zip(value.coefs, extents, strict=True)
    )
    return (reach + spread) * float(np.abs(factor.base.astype(np.float64)).max()) < 2.0**62


# ---- division --------------------------------------------------------------------------------------------------------


def split_by(value: Affine, divisor: I64, extents: tuple[int, ...]) -> tuple[Affine, Affine] | None:
    """(quotient, remainder) of floor division by a positive divisor per row, where both stay affine.

    Terms whose coefficient the divisor divides go to the quotient; the rest must stay inside [0, divisor) in every lane.
    """
    if not fits_int64(value, extents) or not (divisor > 0).all():
        return None
    quotient: list[Coef] = []
    rest: list[Coef] = []
    for coef in value.coefs:
        divides = not (np.asarray(coef, dtype=np.int64) % divisor).any()
        quotient.append(tidy(np.asarray(coef, dtype=np.int64) // divisor) if divides else 0)
        rest.append(0 if divides else coef)
    remainder = Affine(value.base % divisor, tuple(rest))
    low, high = value_range(remainder, extents)
    if (low < 0).any() or (high >= divisor).any():
        return None
    return Affine(value.base // divisor, tuple(quotient)), remainder


def _divide(want: str, *, signed: bool) -> Binary:
    def run(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        extents = frame.extents(shape)
        if isinstance(left, Affine) and isinstance(right, Affine) and uniform(right):
            parts = split_by(left, right.base, extents)
            if parts is not None and (value_range(left, extents)[0] >= 0).all():
                return parts[0] if want == "quotient" else parts[1]
        a, b, known = _cells(left, right, frame, shape)
        defined = b != 0
        if signed:
            lowest = -(2 ** (bits - 1))
            defined = defined & ~((a == lowest) & (b == -1))
        safe = np.where(defined, b, 1)
        out = _signed_division(a, safe, want) if signed else _unsigned_division(a, safe, bits, want)
        return Dense(wrap_cells(out, bits), known if defined.all() else _both(known, defined))

    return run


def _signed_division(a: I64, b: I64, want: str) -> I64:
    """Truncation toward zero, as in the IR."""
    down: I64 = a // b
    quotient: I64 = down + ((down < 0) & (down * b != a))
    return quotient if want == "quotient" else a - quotient * b


def _unsigned_division(a: I64, b: I64, bits: int, want: str) -> I64:
    ua, ub = unsigned_cells(a, bits), unsigned_cells(b, bits)
    return (ua // ub if want == "quotient" else ua % ub).astype(np.int64)


div_signed = _divide("quotient", signed=True)
rem_signed = _divide("remainder", signed=True)
div_unsigned = _divide("quotient", signed=False)
rem_unsigned = _divide("remainder", signed=False)


def _rounded(*, up: bool) -> Binary:
    def run(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        a, b, known = _cells(left, right, frame, shape)
        defined = (b != 0) & ~((a == -(2 ** (bits - 1))) & (b == -1))
        safe = np.where(defined, b, 1)
        out = a // safe
        if up:
            out = out + (out * safe != a)
        return Dense(wrap_cells(out, bits), known if defined.all() else _both(known, defined))

    return run


ceil_signed = _rounded(up=True)
floor_signed = _rounded(up=False)

# ---- shifts and bits -------------------------------------------------------------------------------------------------


def _shift(direction: str) -> Binary:
    def run(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        extents = frame.extents(shape)
        if isinstance(left, Affine) and isinstance(right, Affine) and uniform(right):
            amount = right.base
            if (amount >= 0).all() and (amount < min(bits, 62)).all():
                factor = np.left_shift(np.int64(1), amount)
                if direction == "left" and _product_fits(left, Affine(factor, right.coefs), extents):
                    return wrapped(scaled(left, factor), bits, frame, shape)
                parts = split_by(left, factor, extents) if direction != "left" else None
                if parts is not None and (direction == "signed" or (value_range(left, extents)[0] >= 0).all()):
                    return parts[0]
        a, b, known = _cells(left, right, frame, shape)
        defined = (b >= 0) & (b < bits)
        amount = np.where(defined, b, 0)
        if direction == "left":
            out = np.left_shift(a, amount)
        elif direction == "signed":
            out = np.right_shift(a, amount)
        else:
            out = np.right_shift(unsigned_cells(a, bits), amount.astype(np.uint64)).astype(np.int64)
        return Dense(wrap_cells(out, bits), known if defined.all() else _both(known, defined))

    return run


shift_left = _shift("left")
shift_right_signed = _shift("signed")
shift_right_unsigned = _shift("unsigned")


def bit_and(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
    if isinstance(left, Affine) and isinstance(right, Affine):
        if uniform(left):
            left, right = right, left
        if uniform(right):
            mask = right.base + 1
            if (right.base >= 0).all() and (mask > 0).all() and not (mask & right.base).any():
                parts = split_by(left, mask, frame.extents(shape))
                if parts is not None:
                    return parts[1]
    return _bitwise(np.bitwise_and)(left, right, bits, frame, shape)


def _bitwise(combine: np.ufunc) -> Binary:
    def run(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        a, b, known = _cells(left, right, frame, shape)
        return Dense(combine(a, b), known)

    return run


def bit_or(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
    """An `or` whose operands share no bit is an addition, which keeps lanes affine."""
    if isinstance(left, Affine) and isinstance(right, Affine):
        for high, low in ((left, right), (right, left)):
            if _bits_apart(high, low, frame.extents(shape)):
                return add(high, low, bits, frame, shape)
    return _bitwise(np.bitwise_or)(left, right, bits, frame, shape)


def _bits_apart(high: Affine, low: Affine, extents: tuple[int, ...]) -> bool:
    if not (fits_int64(high, extents) and fits_int64(low, extents)):
        return False
    bottom, top = value_range(low, extents)
    if (bottom < 0).any():
        return False
    unit = 1 << int(top.max()).bit_length()
    if unit >= 1 << 62:
        return False
    return not (high.base % unit).any() and all(not (np.asarray(c, dtype=np.int64) % unit).any() for c in high.coefs)


bit_xor = _bitwise(np.bitwise_xor)


# ---- choosing --------------------------------------------------------------------------------------------------------


def _extreme(*, largest: bool, signed: bool) -> Binary:
    def run(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
        if isinstance(left, Unknown) or isinstance(right, Unknown):
            return left if isinstance(left, Unknown) else right
        if isinstance(left, Affine) and isinstance(right, Affine):
            picked = _pick_affine(left, right, frame.extents(shape), largest=largest, signed=signed)
            if picked is not None:
                return picked
        a, b, known = _cells(left, right, frame, shape)
        if signed:
            return Dense(np.maximum(a, b) if largest else np.minimum(a, b), known)
        above = unsigned_cells(a, bits) > unsigned_cells(b, bits)
        return Dense(np.where(above if largest else ~above, a, b), known)

    return run


def _pick_affine(
    left: Affine, right: Affine, extents: tuple[int, ...], *, largest: bool, signed: bool
) -> Affine | None:
    """The winner where one side wins in every lane of a row."""
    if not (fits_int64(left, extents) and fits_int64(right, extents)):
        return None
    if not signed:
        for side in (left, right):
            if (value_range(side, extents)[0] < 0).any():
                return None
    gap = Affine(left.base - right.base, tuple(_add(a, b, -1) for a, b in zip(left.coefs, right.coefs, strict=True)))
    low, high = value_range(gap, extents)
    left_above, right_above = low >= 0, high <= 0
    if not (left_above | right_above).all():
        return None
    return blend(left_above if largest else ~left_above, left, right)


def blend(take_left: Bits, left: Affine, right: Affine) -> Affine:
    """Row by row, the left value where `take_left`."""
    if take_left.all():
        return left
    if not take_left.any():
        return right
    coefs = tuple(_blend_coef(take_left, a, b) for a, b in zip(left.coefs, right.coefs, strict=True))
    return Affine(np.where(take_left, left.base, right.base), coefs)


def _blend_coef(take_left: Bits, a: Coef, b: Coef) -> Coef:
    if isinstance(a, int) and isinstance(b, int) and a == b:
        return a
    return tidy(np.where(take_left, np.asarray(a, dtype=np.int64), np.asarray(b, dtype=np.int64)))


max_signed = _extreme(largest=True, signed=True)
min_signed = _extreme(largest=False, signed=True)
max_unsigned = _extreme(largest=True, signed=False)
min_unsigned = _extreme(largest=False, signed=False)


def mul_high_unsigned(left: Number, right: Number, bits: int, frame: Frame, shape: Shape) -> Number:
    if isinstance(left, Unknown) or isinstance(right, Unknown):
        return left if isinstance(left, Unknown) else right
    a, b, known = _cells(left, right, frame, shape)
    ua, ub = unsigned_cells(a, bits), unsigned_cells(b, bits)
    if bits <= 32:
        return Dense(wrap_cells(((ua * ub) >> np.uint64(bits)).astype(np.int64), bits), known)
    low, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    a0, a1, b0, b1 = ua & low, ua >> half, ub & low, ub >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    cross = (middle & low) + a0 * b1
    return Dense((a1 * b1 + (middle >> half) + (cross >> half)).astype(np.int64), known)


# ---- widths ----------------------------------------------------------------------------------------------------------


def zero_extend(value: Number, bits: int, frame: Frame, shape: Shape) -> Number:
    """The unsigned reading of a value of `bits`."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Affine):
        extents = frame.extents(shape)
        if fits_int64(value, extents) and (value_range(value, extents)[0] >= 0).all():
            return value
    cells = densify(value, frame, shape)
    if bits >= 64:
        return cells
    return Dense(cells.data & ((1 << bits) - 1), cells.known)


def truncate(value: Number, bits: int, frame: Frame, shape: Shape) -> Number:
    if isinstance(value, Unknown):
        return value
    if isinstance(value, Affine):
        return wrapped(value, bits, frame, shape)
    return Dense(wrap_cells(value.data, bits), value.known)


BINARY: dict[str, Binary] = {
    "arith.addi": add,
    "arith.subi": sub,
    "arith.muli": mul,
    "arith.divsi": div_signed,
    "arith.divui": div_unsigned,
    "arith.remsi": rem_signed,
    "arith.remui": rem_unsigned,
    "arith.ceildivsi": ceil_signed,
    "arith.floordivsi": floor_signed,
    "arith.andi": bit_and,
    "arith.ori": bit_or,
    "arith.xori": bit_xor,
    "arith.shli": shift_left,
    "arith.shrsi": shift_right_signed,
    "arith.shrui": shift_right_unsigned,
    "arith.maxsi": max_signed,
    "arith.minsi": min_signed,
    "arith.maxui": max_unsigned,
    "arith.minui": min_unsigned,
    "tt.mulhiui": mul_high_unsigned,
}
