"""Unordered executions inside one program instance: lattice questions and listings against comparing every pair of cells."""

from __future__ import annotations

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_values import SITE

from racefree.access import Kind
from racefree.graph.program import Access, Ptr, Value
from racefree.proof.footprint import listing, pairs, rung
from racefree.proof.footprint.epochs import Epoch
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.loops import Turn
from racefree.proof.footprint.order import Keys, Rules
from racefree.proof.footprint.shadow import extents_of, shadow
from racefree.proof.footprint.survey import Chunk
from racefree.proof.footprint.values import I64, Affine, Box, Coef, Dense, Number, Truth, cells_of
from racefree.proof.footprint.values import Frame as EvaluationFrame
from racefree.proof.footprint.within import Clash, Question

SEEDS = st.integers(0, 1 << 32)
Cell = tuple[int, ...]


class Drawn:
    """Two footprints of one program instance (or one twice) over a few rows, with epochs and rules."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        pick = self.random.choice
        self.rows = pick([1, 1, 2, 3])
        self.common = tuple(pick([2, 3]) for _ in range(pick([0, 1, 1, 2])))
        self.f = self._footprint(0, ())
        self.same = pick([True, False, False, False])
        extra = () if pick([True, True, False]) else (pick([2, 3]),)
        self.g = self.f if self.same else self._footprint(1, extra)
        self.rules = Rules(self._keys(), self._keys())
        self.question = Question(self.f, self.g, self.f.epoch.barriers, self.g.epoch.barriers, self.rules)

    def _per_row(self, choices: list[int]) -> Coef:
        if self.random.random() < 0.5:
            return self.random.choice(choices)
        return np.array([self.random.choice(choices) for _ in range(self.rows)], dtype=np.int64)

    def _footprint(self, index: int, extra: tuple[int, ...]) -> Footprint:
        pick = self.random.choice
        loops = self.common + extra
        alike = index == 1 and self.random.random() < 0.6  # as most pairs of accesses in one kernel are
        shape = self.f.access.shape if alike else tuple(pick([2, 3, 4]) for _ in range(pick([0, 1, 1, 2])))
        size = pick([1, 2, 4, 4])
        pointer = Value(index, Ptr(size), shape)
        access = Access(index, Kind.STORE, pointer, None, (), None, None, size, SITE)
        axes = len(loops) + len(shape)
        steps = [0, 2, 4, 4, 8, 16, 32, -4, 12]
        base = np.atleast_1d(np.asarray(self._per_row([0, 0, 1, 4, 8, 16, 24, 40, 64]), dtype=np.int64)) + 1000
        coefs = [self._per_row(steps) for _ in range(axes)]
        if alike and isinstance(self.f.address, Affine):
            level = len(self.common)
            coefs[:level], coefs[len(loops) :] = self.f.address.coefs[:level], self.f.address.coefs[level:]
        address: Affine | Dense = Affine(base, tuple(coefs))
        if self.random.random() < 0.1:
            sizes = (self.rows, *loops, *shape)
            data = [pick([0, 2, 4, 8, 12]) + 1000 for _ in range(int(np.prod(sizes)))]
            address = Dense(np.array(data, dtype=np.int64).reshape(sizes))
        bounds = []
        for extent in (*loops, *shape):
            low, high = self._per_row([0, 0, 1]), self._per_row([extent, extent, extent - 1])
            bounds.append(None if self.random.random() < 0.6 else (low, high))
        alive = np.array([self.random.random() < 0.9 for _ in range(self.rows)], dtype=np.bool_)
        where = Box(alive, tuple(bounds))
        nest = tuple(Turn(level, level) for level in range(len(loops)))
        return Footprint(access, address, Truth(where, where), self._epoch(loops), loops, nest, False)

    def _epoch(self, loops: tuple[int, ...]) -> Epoch:
        """Barriers before each execution: per row, with a rate on some loops, or looked up cell by cell."""
        count: Number
        if self.random.random() < 0.1:
            sizes = (self.rows, *loops)
            data = [self.random.choice([0, 0, 1, 2]) for _ in range(int(np.prod(sizes)))]
            count = Dense(np.array(data, dtype=np.int64).reshape(sizes))
        else:
            start = np.atleast_1d(np.asarray(self._per_row([0, 0, 1, 2, 4]), dtype=np.int64))
            count = Affine(start, tuple(self.random.choice([0, 0, 1, 2]) for _ in loops))
        return Epoch(count, count)

    def _keys(self) -> tuple[Keys, ...]:
        """Up to two rules that pair axes; axes of a folded loop both are in, or dimensions of the tiles."""
        out: list[Keys] = []
        tile_f, tile_g = len(self.f.loops), len(self.g.loops)
        dims = min(len(self.f.access.shape), len(self.g.access.shape))
        for _ in range(self.random.choice([0, 0, 1, 1, 1, 2])):
            loops = [(i, i) for i in range(len(self.common)) if self.random.random() < 0.6]
            lanes = [(tile_f + d, tile_g + d) for d in range(dims) if self.random.random() < 0.7]
            out.append(tuple(loops + lanes))
        return tuple(out)

    # ---- the plain answer ----------------------------------------------------------------------------------------------

    def cells(self, footprint: Footprint, row: int) -> tuple[I64, I64, I64]:
        """Indices [n, axes], addresses [n] and epochs [n] of the active cells of a row."""
        extents = extents_of(footprint)
        frame = EvaluationFrame(self.rows, footprint.loops, 1 << 20)
        shape = footprint.access.shape
        whole = (self.rows, *extents)
        active = np.broadcast_to(cells_of(footprint.where.may, frame, shape), whole)[row]
        address = np.broadcast_to(_written_out(footprint.address, extents), whole)[row]
        loops = footprint.loops
        epoch = np.broadcast_to(_written_out(footprint.epoch.barriers, loops), (self.rows, *loops))[row]
        epoch = np.broadcast_to(epoch.reshape(loops + (1,) * len(shape)), extents)
        at = np.argwhere(active).reshape(int(active.sum()), len(extents))
        return at, address[active].reshape(-1), epoch[active].reshape(-1)

    def unordered(self, row: int, *, owned: bool) -> set[tuple[Cell, Cell]]:
        """The pairs of active cells that share a byte with nothing to order them."""
        at_f, address_f, epoch_f = self.cells(self.f, row)
        at_g, address_g, epoch_g = self.cells(self.g, row)
        a, b = address_f[:, None], address_g[None, :]
        free = (a < b + self.g.access.element_bytes) & (b < a + self.f.access.element_bytes)
        free &= epoch_f[:, None] == epoch_g[None, :]
        if self.same:
            free &= ~np.eye(len(at_f), dtype=np.bool_)
        for rule in self.rules.always + (self.rules.owned if owned else ()):
            equal = np.ones_like(free)
            for x, y in rule:
                equal &= at_f[:, x][:, None] == at_g[:, y][None, :]
            free &= ~equal
        return {(tuple(at_f[i].tolist()), tuple(at_g[j].tolist())) for i, j in np.argwhere(free)}


def _written_out(value: Number, extents: tuple[int, ...]) -> I64:
    """One number per row and index."""
    if isinstance(value, Dense):
        return value.data
    assert isinstance(value, Affine)
    axes = len(extents)
    out = value.base.reshape((-1,) + (1,) * axes)
    for axis, (coef, extent) in enumerate(zip(value.coefs, extents, strict=True)):
        column = np.atleast_1d(np.asarray(coef, dtype=np.int64)).reshape((-1,) + (1,) * axes)
        index = np.arange(extent).reshape((1,) * (axis + 1) + (-1,) + (1,) * (axes - 1 - axis))
        out = out + column * index
    return out


@given(seed=SEEDS)
@settings(max_examples=900, deadline=None, derandomize=True)
def test_the_search_finds_an_unordered_pair_exactly_where_there_is_one(seed: int) -> None:
    drawn = Drawn(seed)
    a, b = (shadow(x, x.where.may, drawn.rows, 0, 1 << 20) for x in (drawn.f, drawn.g))
    if a is None or b is None:
        check(drawn, None, owned=False)
        return
    chunk = Chunk(np.arange(drawn.rows), [drawn.f, drawn.g], (a, b), (a, b))
    bare, rest = rung._search(chunk, drawn.question, a, b, drawn.f.where.may, drawn.g.where.may)
    check(drawn, bare, owned=False)
    if bare is not None:
        check(drawn, rest, owned=True)


@given(seed=SEEDS)
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_listing_finds_an_unordered_pair_exactly_where_there_is_one(seed: int) -> None:
    drawn = Drawn(seed)
    found = listing.listed(drawn.question, drawn.f.where.may, drawn.g.where.may, np.arange(drawn.rows), drawn.rows)
    check(drawn, found.owned, owned=True)
    if found.owned is None:
        check(drawn, found.bare, owned=False)


def check(drawn: Drawn, found: Clash | None, *, owned: bool) -> None:
    if found is None:
        assert not any(drawn.unordered(row, owned=owned) for row in range(drawn.rows))
    else:
        assert (found.first, found.second) in drawn.unordered(found.row, owned=owned)


def test_both_answers_are_drawn_often() -> None:
    drawn = [Drawn(seed) for seed in range(60)]
    racing = sum(any(one.unordered(row, owned=False) for row in range(one.rows)) for one in drawn)
    assert 8 <= racing <= 52


@given(SEEDS)
@settings(max_examples=60, deadline=None)
def test_the_footprints_whose_spans_meet_in_some_row(seed: int) -> None:
    drawn = np.random.default_rng(seed)
    rows, count = int(drawn.integers(1, 4)), int(drawn.integers(1, 7))
    spans = []
    for _ in range(count):
        low = drawn.integers(-8, 8, rows)
        here = drawn.random(rows) < 0.8
        high = low + drawn.integers(1, 5, rows)
        spans.append((np.where(here, low, pairs.NEVER[0]), np.where(here, high, pairs.NEVER[1])))
    found = [(at, other) for at, others in pairs.spans_that_meet(spans) for other in others]
    assert found == [
        (i, j)
        for i in range(count)
        for j in range(i, count)
        if i == j or any(spans[i][0][r] < spans[j][1][r] and spans[j][0][r] < spans[i][1][r] for r in range(rows))
    ]
