"""Compares the elements of two footprints of one program instance one by one, for the rows no formula settled."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from racefree.errors import Refused
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.order import Keys, Perhaps
from racefree.proof.footprint.shadow import Points, extents_of, points_of_rows
from racefree.proof.footprint.values import I64, Affine, Bits, Dense, Number, Region
from racefree.proof.footprint.within import Clash, Question

MOST_ELEMENTS = 1 << 24
MOST_MEETINGS = 1 << 24
PIECE = 1 << 20


@dataclass(frozen=True, slots=True)
class Listing:
    """`bare` is a clash when only barriers and dependence order; `owned` one that remains when a lane is one thread."""

    bare: Clash | None
    owned: Clash | None


def listed(asked: Question, f_region: Region, g_region: Region, chosen: I64, rows: int) -> Listing:
    """Every pair of elements of the chosen rows that share a byte, judged one by one. Raises `Refused` past the budget."""
    f, g = asked.f, asked.g
    step = max(1, MOST_ELEMENTS // max(1, _cells(f), _cells(g)))
    if _cells(f) > MOST_ELEMENTS or _cells(g) > MOST_ELEMENTS:
        raise Refused("overlap-budget", "too many elements of one program to compare one by one", f.access.site)
    bare: Clash | None = None
    for start in range(0, len(chosen), step):
        part = chosen[start : start + step]
        left = points_of_rows(f, f_region, part, rows, 0, MOST_ELEMENTS)
        right = left if f is g else points_of_rows(g, g_region, part, rows, 0, MOST_ELEMENTS)
        if left is None or right is None:
            continue
        found = _compare(asked, left, right)
        bare = bare or found.bare
        if found.owned is not None or (bare is not None and not asked.rules.owned and not asked.rules.perhaps):
            return Listing(bare, found.owned)
    return Listing(bare, None)


def _cells(f: Footprint) -> int:
    return int(np.prod(extents_of(f), dtype=np.int64)) if extents_of(f) else 1


def _compare(asked: Question, left: Points, right: Points) -> Listing:
    f, g = asked.f, asked.g
    a_id, a_key, b_id, b_key = _keyed(left, right)
    order = np.argsort(b_key, kind="stable")
    ordered = b_key[order]
    first = np.searchsorted(ordered, a_key, "left")
    count = np.searchsorted(ordered, a_key, "right") - first
    bare: Clash | None = None
    busy = np.flatnonzero(count > (1 if f is g else 0))  # An element always meets itself.
    sums = np.cumsum(count[busy])
    at = 0
    while at < len(busy):
        done = int(sums[at - 1]) if at else 0
        if done > MOST_MEETINGS:
            raise Refused("overlap-budget", "too many elements of one program meet to compare them", f.access.site)
        stop = max(at + 1, int(np.searchsorted(sums, done + PIECE, "right")))
        chunk = busy[at:stop]
        sizes = count[chunk]
        inner = (
            np.arange(int(sizes.sum())) - np.repeat(np.cumsum(sizes) - sizes, sizes) + np.repeat(first[chunk], sizes)
        )
        i, j = a_id[np.repeat(chunk, sizes)], b_id[order[inner]]
        free, loose = _unordered(asked, left, right, i, j)
        if bare is None and free.any():
            hit = int(np.flatnonzero(free)[0])
            bare = _clash(f, g, left, right, int(i[hit]), int(j[hit]))
        if loose.any():
            hit = int(np.flatnonzero(loose)[0])
            return Listing(bare, _clash(f, g, left, right, int(i[hit]), int(j[hit])))
        at = stop
    return Listing(bare, None)


def _keyed(left: Points, right: Points) -> tuple[I64, I64, I64, I64]:
    """For both sides, element numbers and a key that is equal exactly for a shared unit of bytes in one row."""
    low = min(int(left.address.min()), int(right.address.min()))
    span = max(int(left.address.max()), int(right.address.max())) - low + max(left.elem_bytes, right.elem_bytes)
    if (int(max(left.rows.max(), right.rows.max())) + 1) * span >= 1 << 62:
        raise Refused("overlap-budget", "the elements of one program lie too far apart to compare them")
    size = left.elem_bytes
    whole = size == right.elem_bytes and not any(((side.address - low) % size).any() for side in (left, right))
    out: list[I64] = []
    for side in (left, right):
        ids, key = np.arange(len(side.address)), side.rows * span + (side.address - low)
        if not whole:
            ids, key = np.repeat(ids, side.elem_bytes), np.repeat(key, side.elem_bytes)
            key += np.tile(np.arange(side.elem_bytes), len(side.address))
        out += [ids, key]
    return out[0], out[1], out[2], out[3]


def _indices(cell: I64, extents: tuple[int, ...]) -> tuple[I64, ...]:
    return tuple(np.asarray(x, dtype=np.int64) for x in np.unravel_index(cell, extents)) if extents else ()


def _unordered(asked: Question, left: Points, right: Points, i: I64, j: I64) -> tuple[Bits, Bits]:
    """Which pairs nothing orders, and which not even the rules that take a lane to be one thread."""
    at_f, at_g = _indices(left.cell[i], left.extents), _indices(right.cell[j], right.extents)
    epoch_f, sure_f = _epochs(asked.count_f, left.rows[i], at_f)
    epoch_g, sure_g = _epochs(asked.count_g, right.rows[j], at_g)
    free = (epoch_f == epoch_g) | ~sure_f | ~sure_g
    if asked.f is asked.g:
        free &= left.cell[i] < right.cell[j]
    for keys in asked.rules.always:
        free &= ~_equal(keys, at_f, at_g, len(i))
    loose = free.copy()
    for keys in asked.rules.owned:
        loose &= ~_equal(keys, at_f, at_g, len(i))
    for doubt in asked.rules.perhaps:
        loose &= ~(_equal(doubt.lanes, at_f, at_g, len(i)) & _in_order(doubt, at_f, at_g, len(i)))
    return free, loose


def _in_order(doubt: Perhaps, at_f: tuple[I64, ...], at_g: tuple[I64, ...], n: int) -> Bits:
    """Whether the first of a pair runs before the second (the other way round for a backward dependence)."""
    before, tied = np.zeros(n, dtype=np.bool_), np.ones(n, dtype=np.bool_)
    for x, y in doubt.loops:
        left, right = (at_g[y], at_f[x]) if doubt.backward else (at_f[x], at_g[y])
        before |= tied & (left < right)
        tied &= left == right
    return before | tied


def _equal(keys: Keys, at_f: tuple[I64, ...], at_g: tuple[I64, ...], n: int) -> Bits:
    out = np.ones(n, dtype=np.bool_)
    for x, y in keys:
        out &= at_f[x] == at_g[y]
    return out


def _epochs(count: Number, rows: I64, at: tuple[I64, ...]) -> tuple[I64, Bits]:
    """The barriers passed before each execution, and where that number is known."""
    n = len(rows)
    match count:
        case Affine(base, coefs):
            out = np.broadcast_to(base, (n,)) if base.size == 1 else base[rows]
            for axis, coef in enumerate(coefs):
                out = out + at[axis] * (coef if isinstance(coef, int) or coef.size == 1 else coef[rows])
            return out, np.ones(n, dtype=np.bool_)
        case Dense(data, known):
            values = data[_cell(data.shape, rows, at)]
            return values, np.ones(n, dtype=np.bool_) if known is None else known[_cell(known.shape, rows, at)]
        case _:
            return np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)


def _cell(shape: tuple[int, ...], rows: I64, at: tuple[I64, ...]) -> tuple[I64, ...]:
    zero = np.zeros(len(rows), dtype=np.int64)
    picks = [zero if shape[0] == 1 else rows]
    picks += [zero if extent == 1 else at[axis] for axis, extent in enumerate(shape[1:])]
    return tuple(picks)


def _clash(f: Footprint, g: Footprint, left: Points, right: Points, i: int, j: int) -> Clash:
    def at(points: Points, k: int) -> tuple[int, ...]:
        if not points.extents:
            return ()
        return tuple(int(x) for x in np.unravel_index(int(points.cell[k]), points.extents))

    return Clash(int(left.rows[i]), at(left, i), at(right, j))
