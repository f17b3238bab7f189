"""Draws values as the geometry rung holds them, and spreads any such value out to one plain number per cell."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import numpy as np

from racefree.access import Site
from racefree.proof.footprint.values import (
    I64,
    Affine,
    Bits,
    Box,
    Cells,
    Coef,
    Dense,
    Frame,
    Number,
    Region,
    Truth,
    Unknown,
    cells_of,
    densify,
)

Shape = tuple[int, ...]
SITE = Site("values.py", 1)


class Drawing:
    """Everything drawn from one seed: a frame of a few rows and at most one folded loop, a tile's shape, values in it."""

    def __init__(self, seed: int, dims: int | None = None, bits: int | None = None) -> None:
        self.random = random.Random(seed)
        pick = self.random.choice
        loops = pick([(), (), (2,), (3,)])
        size = pick([0, 1, 1, 2]) if dims is None else dims
        self.frame = Frame(pick([1, 2, 3]), loops, 1 << 20)
        self.shape = tuple(pick([1, 2, 3, 4]) for _ in range(size))
        self.bits = pick([8, 16, 32, 64]) if bits is None else bits

    @property
    def whole(self) -> Shape:
        return (self.frame.rows, *self.frame.extents(self.shape))

    def number(self, *, small: bool = False) -> int:
        top = 1 << (self.bits - 1)
        kind = self.random.randrange(3)
        if kind == 0 or small:
            return self.random.randint(-8, 8)
        if kind == 1:
            return self.random.choice([-top, -top + 1, top - 1, top - 2, -1, 0, 1, 2])
        return self.random.randint(-top, top - 1)

    def _rows(self, one: Callable[[], int]) -> I64:
        count = self.random.choice([1, self.frame.rows])
        return np.array([one() for _ in range(count)], dtype=np.int64)

    def _coef(self) -> Coef:
        def one() -> int:
            return self.random.choice([0, 0, 1, 1, -1, 2, 3, 8, -16, 64, self.number(), self.number(small=True)])

        out = self._rows(one)
        return int(out[0]) if out.size == 1 else out

    def affine(self, *, uniform: bool = False) -> Affine | Dense:
        """An affine value; cell by cell if it would leave its width."""
        extents = self.frame.extents(self.shape)
        base = self._rows(self.number)
        coefs = tuple(0 if uniform else self._coef() for _ in extents)
        axes = len(extents)
        exact = base.astype(object).reshape((-1,) + (1,) * axes)
        for axis, (coef, extent) in enumerate(zip(coefs, extents, strict=True)):
            index = np.arange(extent).astype(object).reshape((1,) * (1 + axis) + (-1,) + (1,) * (axes - 1 - axis))
            exact = exact + np.atleast_1d(coef).astype(object).reshape((-1,) + (1,) * axes) * index
        top = 1 << (self.bits - 1)
        cells = [int(x) for x in exact.reshape(-1)]
        if all(-top <= x < top for x in cells):
            return Affine(base, coefs)
        return Dense(np.array([reduce_to(x, self.bits) for x in cells], dtype=np.int64).reshape(exact.shape))

    def _sizes(self) -> Shape:
        return tuple(self.random.choice([1, n]) for n in self.whole)

    def dense(self) -> Dense:
        sizes = self._sizes()
        count = int(np.prod(sizes, dtype=np.int64))
        data = np.array([self.number() for _ in range(count)], dtype=np.int64).reshape(sizes)
        return Dense(data) if self.random.random() < 0.5 else Dense(data, self._bools(sizes))

    def value(self) -> Affine | Dense:
        kind = self.random.randrange(4)
        return self.dense() if kind == 0 else self.affine(uniform=kind == 1)

    def _bools(self, sizes: Shape) -> Bits:
        count = int(np.prod(sizes, dtype=np.int64))
        odds = self.random.choice([0.0, 0.5, 0.8, 1.0])
        return np.array([self.random.random() < odds for _ in range(count)], dtype=np.bool_).reshape(sizes)

    def region(self) -> Region:
        if self.random.random() < 0.4:
            return Cells(self._bools(self._sizes()))
        bounds: list[tuple[Coef, Coef] | None] = []
        for extent in self.frame.extents(self.shape):
            if self.random.random() < 0.5:
                bounds.append(None)
                continue
            low, high = (
                self._rows(lambda e=extent: self.random.randint(-1, e)),
                self._rows(lambda e=extent: self.random.randint(0, e + 1)),
            )
            bounds.append((int(low[0]) if low.size == 1 else low, int(high[0]) if high.size == 1 else high))
        return Box(self._bools((self.random.choice([1, self.frame.rows]),)), tuple(bounds))

    def truth(self) -> Truth:
        may = self.region()
        if self.random.random() < 0.5:
            return Truth(may, may)
        must = cells_of(may, self.frame, self.shape) & cells_of(self.region(), self.frame, self.shape)
        return Truth(may, Cells(must), Unknown("drawn", SITE))


def spread(value: Number, frame: Frame, shape: Shape) -> tuple[I64, Bits]:
    """Every cell's number, and whether it is known."""
    full = (frame.rows, *frame.extents(shape))
    if isinstance(value, Unknown):
        return np.zeros(full, dtype=np.int64), np.zeros(full, dtype=np.bool_)
    with np.errstate(over="ignore"):
        cells = densify(value, frame, shape)
    known = np.ones((), np.bool_) if cells.known is None else cells.known
    return np.broadcast_to(cells.data, full), np.broadcast_to(known, full)


def bounds_of(truth: Truth, frame: Frame, shape: Shape) -> tuple[Bits, Bits]:
    """(may, must) of every cell."""
    full = (frame.rows, *frame.extents(shape))
    return (
        np.broadcast_to(cells_of(truth.may, frame, shape), full),
        np.broadcast_to(cells_of(truth.must, frame, shape), full),
    )


def possible(may: bool, must: bool) -> Sequence[bool]:
    return (True,) if must else ((False, True) if may else (False,))


def reduce_to(number: int, bits: int) -> int:
    half = 1 << (bits - 1)
    return (number + half) % (2 * half) - half


def unsigned(number: int, bits: int) -> int:
    return number % (1 << bits)
