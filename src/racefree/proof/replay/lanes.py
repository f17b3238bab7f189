"""What a concrete evaluation knows of a value: the bit pattern of each element, and which elements are known at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from racefree.graph.program import Element, Float, Int, Opaque, Ptr, Value

Bits = npt.NDArray[np.uint64]
Known = npt.NDArray[np.bool_]
Taint = npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True, eq=False)
class Lanes:
    """One value: `bits` is the unsigned pattern at the element's width, 0 where not `known` (undefined is unknown).

    `taint` holds, per element, the set of reads it was computed from, as the bits of a Python integer (None when not
    tracked).
    """

    bits: Bits
    known: Known
    taint: Taint | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.bits.shape

    def scalar(self) -> int | None:
        """The pattern of a one-element value, or None where it is unknown."""
        return int(self.bits.reshape(-1)[0]) if bool(self.known.reshape(-1)[0]) else None


def element_bits(element: Element) -> int:
    """The width of one element in bits; 0 for a type nothing is computed with."""
    match element:
        case Int() | Float():
            return element.bits
        case Ptr():
            return 64
        case Opaque():
            return 0


def ones(bits: int) -> np.uint64:
    """The all-ones pattern of a width of at most 64 bits."""
    return np.uint64((1 << bits) - 1)


def signed(pattern: Bits, bits: int) -> npt.NDArray[np.int64]:
    """Two's complement reading of patterns of a width of at most 64 bits."""
    shift = np.uint64(64 - bits)
    return np.asarray(np.left_shift(pattern, shift)).view(np.int64) >> np.int64(64 - bits)


def signed_int(pattern: int, bits: int) -> int:
    """Two's complement reading of one pattern."""
    return pattern - (1 << bits) if pattern >> (bits - 1) & 1 else pattern


def constant(pattern: int | tuple[int, ...], value: Value, *, track: bool = False) -> Lanes:
    """A known value: every element the same, or one pattern each in row-major order (wrapped to the width)."""
    bits = element_bits(value.element)
    if not 1 <= bits <= 64:
        return unknown(value.shape, track=track)
    top = (1 << bits) - 1
    if isinstance(pattern, tuple):
        data = np.array([p & top for p in pattern], dtype=np.uint64).reshape(value.shape)
    else:
        data = np.full(value.shape, pattern & top, dtype=np.uint64)
    return Lanes(data, np.ones(value.shape, dtype=np.bool_), blank(value.shape) if track else None)


def unknown(shape: tuple[int, ...], taint: Taint | None = None, *, track: bool = False) -> Lanes:
    """A value no element of which is known."""
    if taint is None and track:
        taint = blank(shape)
    return Lanes(np.zeros(shape, dtype=np.uint64), np.zeros(shape, dtype=np.bool_), taint)


def blank(shape: tuple[int, ...]) -> Taint:
    """No element depends on any read."""
    return objects(np.zeros(shape, dtype=np.uint64), shape, empty=True)


def objects(data: Any, shape: tuple[int, ...], *, empty: bool = False) -> Taint:
    """Python integers as an object array (also for shape (), where NumPy would hand out bare scalars)."""
    out = np.empty(shape, dtype=np.object_)
    if empty:
        out.fill(0)
    else:
        out[...] = data
    return out


def union(parts: list[Taint], shape: tuple[int, ...]) -> Taint:
    """Lane for lane union of dependence sets, broadcast to `shape`."""
    out: Any = blank(shape)
    for part in parts:
        out = objects(np.bitwise_or(out, part), shape)
    return out  # type: ignore[no-any-return]


def gathered(parts: list[Taint], shape: tuple[int, ...]) -> Taint:
    """Every element depends on all elements of all parts."""
    total = 0
    for part in parts:
        for each in part.reshape(-1):
            total |= each
    out = np.empty(shape, dtype=np.object_)
    out.fill(total)
    return out


def along(taint: Taint, axis: int, shape: tuple[int, ...], reverse: bool) -> Taint:
    """A fold along `axis`: all elements of the line where `shape` lacks the axis, else those up to (or from) each."""
    if len(shape) < taint.ndim:
        return objects(np.bitwise_or.reduce(taint, axis=axis), shape)
    line: Any = np.moveaxis(taint, axis, 0)[:: -1 if reverse else 1]
    line = np.bitwise_or.accumulate(line, axis=0)[:: -1 if reverse else 1]
    return objects(np.moveaxis(line, 0, axis), shape)
