"""Operations that move lanes about, against NumPy on every cell written out."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from launch_values import Drawing, Shape, bounds_of, spread

from racefree.proof.footprint import tiles
from racefree.proof.footprint.values import Dense, Frame, Truth, Val, densify

SEEDS = st.integers(0, 1 << 32)
Array = npt.NDArray[np.generic]
Move = Callable[[Array, int], Array]
"""Moves an array of every cell; the number is how many axes stand before the tile's."""


def drawn_val(drawn: Drawing) -> Val:
    return drawn.truth() if drawn.random.random() < 0.4 else drawn.value()


def layers(value: Val, frame: Frame, shape: Shape) -> tuple[Array, Array]:
    """(numbers with unknown ones blanked, known) of a number; (may, must) of a boolean."""
    if isinstance(value, Truth):
        return bounds_of(value, frame, shape)
    cells, known = spread(value, frame, shape)
    return np.where(known, cells, 0), known


def same_as(out: Val, value: Val, frame: Frame, old: Shape, new: Shape, move: Move) -> None:
    lead = 1 + len(frame.loops)
    for found, source in zip(layers(out, frame, new), layers(value, frame, old), strict=True):
        assert (found == move(source, lead)).all()
    if isinstance(value, Truth):
        assert isinstance(out, Truth)
        assert out.exact == value.exact


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_splat(seed: int) -> None:
    drawn = Drawing(seed, dims=0)
    value = drawn_val(drawn)

    def move(cells: Array, lead: int) -> Array:
        return np.broadcast_to(cells.reshape(*cells.shape, 1, 1), (*cells.shape, 2, 3))

    same_as(tiles.splat(value, 2), value, drawn.frame, (), (2, 3), move)


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_expand_and_permute(seed: int) -> None:
    drawn = Drawing(seed)
    value, dims = drawn_val(drawn), len(drawn.shape)
    axis = drawn.random.randint(0, dims)
    new = (*drawn.shape[:axis], 1, *drawn.shape[axis:])
    out = tiles.expand(value, len(drawn.frame.loops) + axis)
    same_as(out, value, drawn.frame, drawn.shape, new, lambda c, lead: np.expand_dims(c, lead + axis))
    order = tuple(drawn.random.sample(range(dims), dims))
    turned = tuple(drawn.shape[d] for d in order)

    def move(cells: Array, lead: int) -> Array:
        return np.transpose(cells, (*range(lead), *(lead + d for d in order)))

    out = tiles.permute(value, len(drawn.frame.loops), order)
    same_as(out, value, drawn.frame, drawn.shape, turned, move)


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_broadcast(seed: int) -> None:
    drawn = Drawing(seed)
    drawn.shape = tuple(drawn.random.choice([1, n]) for n in drawn.shape)
    value = drawn_val(drawn)
    new = tuple(drawn.random.choice([1, 3]) if n == 1 else n for n in drawn.shape)
    out = tiles.broadcast(value, drawn.shape, new)
    same_as(out, value, drawn.frame, drawn.shape, new, lambda c, lead: np.broadcast_to(c, c.shape[:lead] + new))


SHAPES = [(12,), (3, 4), (4, 3), (2, 6), (6, 2), (1, 12), (12, 1), (2, 3, 2), (1, 3, 1, 4), (2, 1, 6), (1,), (1, 1), ()]


@given(seed=SEEDS)
@settings(max_examples=250, deadline=None, derandomize=True)
def test_reshape(seed: int) -> None:
    drawn = Drawing(seed)
    old = drawn.random.choice(SHAPES)
    new = drawn.random.choice([s for s in SHAPES if np.prod(s) == np.prod(old)])
    drawn.shape = old
    value = drawn_val(drawn)
    if drawn.random.random() < 0.5:  # one row-major run of numbers, which stays affine in every shape
        drawn.shape = (int(np.prod(old)),)
        flat = drawn.affine()
        value = tiles.reshape(flat, drawn.shape, old, drawn.frame)
        drawn.shape = old
    out = tiles.reshape(value, old, new, drawn.frame)
    same_as(out, value, drawn.frame, old, new, lambda c, lead: c.reshape(c.shape[:lead] + new))


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_the_only_element_of_a_tile(seed: int) -> None:
    drawn = Drawing(seed, dims=2)
    drawn.shape = (1, 1)
    value = drawn_val(drawn)
    out = tiles.first_element(value, drawn.shape, drawn.frame)
    same_as(out, value, drawn.frame, drawn.shape, (), lambda c, lead: c.reshape(c.shape[:lead]))


@given(seed=SEEDS)
@settings(max_examples=150, deadline=None, derandomize=True)
def test_join_and_split(seed: int) -> None:
    drawn = Drawing(seed)
    boolean = drawn.random.random() < 0.4
    pair = [drawn.truth() if boolean else drawn.value() for _ in range(2)]
    joined = tiles.join(pair[0], pair[1], drawn.shape, drawn.frame)
    both = [layers(v, drawn.frame, drawn.shape) for v in pair]
    found = layers(joined, drawn.frame, (*drawn.shape, 2))
    for layer in (0, 1):
        assert (found[layer] == np.stack([both[0][layer], both[1][layer]], axis=-1)).all()
    for position in (0, 1):
        part = tiles.take_last(joined, (*drawn.shape, 2), position, drawn.frame)
        back = layers(part, drawn.frame, drawn.shape)
        assert all((back[layer] == both[position][layer]).all() for layer in (0, 1))


FOLDS: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "max": max,
    "min": min,
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


@pytest.mark.parametrize("combine", [*FOLDS, "maxu", "minu"])
@pytest.mark.parametrize("scan", [False, True])
@given(seed=SEEDS)
@settings(max_examples=40, deadline=None, derandomize=True)
def test_reductions_and_scans(combine: str, scan: bool, seed: int) -> None:
    drawn = Drawing(seed, dims=2)
    value = drawn.value()
    axis, reverse = drawn.random.randint(0, 1), scan and drawn.random.random() < 0.5
    dense = densify(value, drawn.frame, drawn.shape)
    loops = len(drawn.frame.loops)
    out = tiles.fold(dense, loops, axis, drawn.shape, combine, drawn.bits, scan=scan, reverse=reverse)
    cells, known = spread(value, drawn.frame, drawn.shape)
    top = 1 << drawn.bits
    if out is None:
        assert drawn.bits == 64
        assert combine in ("maxu", "minu")
        return
    at = 1 + loops + axis
    shape = drawn.shape if scan else tuple(n for d, n in enumerate(drawn.shape) if d != axis)
    found, sure = spread(out, drawn.frame, shape)
    columns, oks = np.moveaxis(cells, at, -1), np.moveaxis(known, at, -1)
    results = np.moveaxis(found, at, -1) if scan else found[..., None]
    certain = np.moveaxis(sure, at, -1) if scan else sure[..., None]
    for lane in np.ndindex(columns.shape[:-1]):
        numbers, ok = columns[lane].tolist(), oks[lane].tolist()
        if reverse:
            numbers, ok = numbers[::-1], ok[::-1]
        expected: list[int] = []
        for number in numbers:
            step = number % top if combine.endswith("u") else number
            expected.append(FOLDS[combine.removesuffix("u")](expected[-1], step) if expected else step)
        told = [all(ok[: k + 1]) for k in range(len(ok))]
        if reverse:
            expected, told = expected[::-1], told[::-1]
        if not scan:
            expected, told = expected[-1:], told[-1:]
        assert certain[lane].tolist() == told
        wrapped = [(e + top // 2) % top - top // 2 for e in expected]
        assert [r for r, t in zip(results[lane].tolist(), told, strict=True) if t] == [
            w for w, t in zip(wrapped, told, strict=True) if t
        ]


@given(seed=SEEDS)
@settings(max_examples=100, deadline=None, derandomize=True)
def test_gather(seed: int) -> None:
    drawn = Drawing(seed, dims=2, bits=32)
    table = densify(drawn.value(), drawn.frame, drawn.shape)
    axis = drawn.random.randint(0, 1)
    picks = random.Random(seed)
    shape = tuple(picks.choice([1, 2, 5]) if d == axis else n for d, n in enumerate(drawn.shape))
    whole = (drawn.frame.rows, *drawn.frame.extents(shape))
    data = np.array([picks.randint(-1, drawn.shape[axis]) for _ in range(int(np.prod(whole)))]).reshape(whole)
    at = 1 + len(drawn.frame.loops) + axis
    out = tiles.gather(table, Dense(data.astype(np.int64)), at, drawn.shape, shape, drawn.frame)
    source, source_known = spread(table, drawn.frame, drawn.shape)
    found, known = spread(out, drawn.frame, shape)
    for cell in np.ndindex(whole):
        index = int(data[cell])
        inside = 0 <= index < drawn.shape[axis]
        origin = (*cell[:at], index if inside else 0, *cell[at + 1 :])
        assert bool(known[cell]) == (inside and bool(source_known[origin]))
        if known[cell]:
            assert found[cell] == source[origin]
