"""Whether two executions inside one program instance touch one byte with nothing to order them.

Where lanes are affine, each question ("differ first along this axis") is one overlap question per kind of row. Where that
does not fit, the elements are listed and compared one by one.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from racefree.geometry import OVERLAP, UNKNOWN_PAIR, PatternArray, Witness, overlap_witness, overlaps_batch
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.order import Keys, Rules, affine_epochs, common_loops
from racefree.proof.footprint.shadow import Lattice
from racefree.proof.footprint.values import I64, Number, Unknown

MOST_KINDS = 1 << 16


@dataclass(frozen=True, slots=True)
class Clash:
    """Two executions in program row `row`: indices along the axes (folded loops, then tile) of both footprints."""

    row: int
    first: tuple[int, ...]
    second: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Undecided:
    """The affine questions did not settle these rows."""

    rows: I64


@dataclass(slots=True)
class _Side:
    """One side of an overlap question under construction: base and dims, one entry per row."""

    base: I64
    steps: list[I64] = field(default_factory=list)
    counts: list[I64] = field(default_factory=list)
    meaning: list[tuple[str, int, int, I64]] = field(default_factory=list)

    def add(self, step: I64, count: I64, meaning: tuple[str, int, int, I64]) -> None:
        self.steps.append(step)
        self.counts.append(np.maximum(count, 0))
        self.meaning.append(meaning)

    def patterns(self, elem_bytes: int) -> PatternArray:
        n = len(self.base)
        elem = np.full(n, elem_bytes, dtype=np.int64)
        if not self.steps:
            empty = np.zeros((n, 0), dtype=np.int64)
            return PatternArray(self.base, elem, empty, empty)
        return PatternArray(self.base, elem, np.stack(self.steps, axis=1), np.stack(self.counts, axis=1))


@dataclass(frozen=True, slots=True, eq=False)
class Pair:
    """Two footprints of one program instance as lattices over the same rows (one row per kind of program instance)."""

    f: Lattice
    g: Lattice
    same: bool
    offset: dict[tuple[int, int], int]
    exact: bool


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """Two footprints of one program instance, `f` before `g` or the same one, with what may order their executions.

    `count_f` and `count_g` count the barriers passed before; equal counts mean that none lies in between.
    """

    f: Footprint
    g: Footprint
    count_f: Number
    count_g: Number
    rules: Rules


def clash(asked: Question, f_lattice: Lattice, g_lattice: Lattice, *, owned: bool) -> Clash | Undecided | None:
    """An unordered pair of executions, None when there is none.

    With `owned`, a lane is one thread. `Undecided` names rows to be listed element by element.
    """
    undecided: list[I64] = []
    for pair in _pairs(asked, f_lattice, g_lattice):
        candidates: list[Keys | None] = list(asked.rules.always)
        if owned:
            candidates.extend(asked.rules.owned)
        found: list[Clash] = []
        doubtful = not pair.exact
        for keys in candidates or [None]:
            answer = _unordered(pair, keys)
            if answer is None:
                found = []
                break
            if isinstance(answer, Undecided):
                doubtful = True
            else:
                found.append(answer)
        else:
            if len(candidates) <= 1 and not doubtful and found:
                return found[0]
            undecided.append(pair.f.rows)
    return Undecided(np.unique(np.concatenate(undecided))) if undecided else None


# ---- kinds of rows ---------------------------------------------------------------------------------------------------


def _pairs(asked: Question, a: Lattice, b: Lattice) -> list[Pair]:
    """The rows both reach within one barrier epoch, one per kind, split by the loop offset that equal epochs force."""
    f, g = asked.f, asked.g
    same = f is g
    if same:
        at_a = at_b = np.arange(len(a.rows))
    else:
        _, at_a, at_b = np.intersect1d(a.rows, b.rows, assume_unique=True, return_indices=True)
    if not len(at_a):
        return []
    a, b = _take(a, at_a), _take(b, at_b)
    ef, eg = affine_epochs(asked.count_f), affine_epochs(asked.count_g)
    if ef is None or eg is None:
        # Rows alike in their addresses may still pass different barriers, unless nothing is known about those at all.
        unknown = isinstance(asked.count_f, Unknown) or isinstance(asked.count_g, Unknown)
        return [_kinds(a, b, same, {}, exact=False) if unknown else Pair(a, b, same, {}, exact=False)]
    gap = _at_rows(eg.start, b.rows) - _at_rows(ef.start, a.rows)
    moving_f = [i for i, r in enumerate(ef.rates) if r]
    moving_g = [i for i, r in enumerate(eg.rates) if r]
    if not moving_f and not moving_g:
        keep = np.flatnonzero(gap == 0)
        return [_kinds(_take(a, keep), _take(b, keep), same, {}, exact=True)] if len(keep) else []
    loops, _ = common_loops(f, g)
    if len(moving_f) == len(moving_g) == 1 and (moving_f[0], moving_g[0]) in loops:
        rate = ef.rates[moving_f[0]]
        if rate == eg.rates[moving_g[0]]:
            return _by_offset(a, b, same, gap, rate, (moving_f[0], moving_g[0]))
    if len(moving_f) + len(moving_g) == 1:
        return _pinned(a, b, same, gap, ef.rates, eg.rates)
    return [_kinds(a, b, same, {}, gap, exact=False)]


def _at_rows(values: I64, rows: I64) -> I64:
    return np.broadcast_to(values, (len(rows),)) if values.shape[0] == 1 else values[rows]


def _by_offset(a: Lattice, b: Lattice, same: bool, gap: I64, rate: int, axes: tuple[int, int]) -> list[Pair]:
    """Equal epochs put the two iterations a fixed distance apart."""
    out = []
    whole = gap % rate == 0
    for offset in np.unique(gap[whole] // rate).tolist():
        keep = np.flatnonzero(whole & (gap // rate == offset))
        out.append(_kinds(_take(a, keep), _take(b, keep), same, {axes: offset}, exact=True))
    return out


def _pinned(
    a: Lattice, b: Lattice, same: bool, gap: I64, f_rates: tuple[int, ...], g_rates: tuple[int, ...]
) -> list[Pair]:
    """Equal epochs leave one iteration of the only loop with barriers."""
    in_f = any(f_rates)
    rates = f_rates if in_f else g_rates
    axis = next(i for i, r in enumerate(rates) if r)
    signed = gap if in_f else -gap
    whole = signed % rates[axis] == 0
    turn = signed // rates[axis]
    side = a if in_f else b
    keep = np.flatnonzero(whole & (turn >= side.low[:, axis]) & (turn < side.high[:, axis]))
    if not len(keep):
        return []
    a, b, turn = _take(a, keep), _take(b, keep), turn[keep]
    side = a if in_f else b
    low, high = side.low.copy(), side.high.copy()
    low[:, axis], high[:, axis] = turn, turn + 1
    narrowed = Lattice(side.rows, side.base, side.coefs, low, high, side.elem_bytes)
    return [_kinds(narrowed, b, same, {}, exact=True) if in_f else _kinds(a, narrowed, same, {}, exact=True)]


def _take(lattice: Lattice, keep: I64) -> Lattice:
    if len(keep) == len(lattice.rows):
        return lattice
    return Lattice(
        lattice.rows[keep],
        lattice.base[keep],
        lattice.coefs[keep],
        lattice.low[keep],
        lattice.high[keep],
        lattice.elem_bytes,
    )


def _kinds(
    a: Lattice,
    b: Lattice,
    same: bool,
    offset: dict[tuple[int, int], int],
    gap: I64 | None = None,
    *,
    exact: bool,
) -> Pair:
    """One row for each different relation between the two lattices (and distance between their epochs, where given)."""
    columns = [b.base - a.base, *a.coefs.T, *b.coefs.T, *a.low.T, *b.low.T, *a.high.T, *b.high.T]
    if gap is not None:
        columns.append(gap)
    varying = [c for c in columns if len(c) and (c != c[0]).any()]
    if not varying:
        keep = np.zeros(1, dtype=np.int64)
    else:
        _, keep = np.unique(np.stack(varying, axis=1), axis=0, return_index=True)
        keep = np.sort(keep)
    return Pair(_take(a, keep), _take(b, keep), same, offset, exact)


# ---- one rule --------------------------------------------------------------------------------------------------------


def _unordered(pair: Pair, keys: Keys | None) -> Clash | Undecided | None:
    """A pair of executions that share a byte and differ along some key (any two different ones when there is no rule)."""
    if keys is None:
        axes = len(pair.f.coefs[0]) if len(pair.f.rows) else 0
        if not pair.same:
            return _ask(pair, [], None, "")
        keys = tuple((i, i) for i in range(axes))
    if any(pair.offset.get(key) for key in keys):
        return _ask(pair, [], None, "")
    free = [key for key in keys if key not in pair.offset]
    doubt = False
    for position, key in enumerate(free):
        for direction in ("less",) if pair.same else ("less", "more"):
            answer = _ask(pair, free[:position], key, direction)
            if isinstance(answer, Clash):
                return answer
            doubt = doubt or answer is not None
    return Undecided(pair.f.rows) if doubt else None


def _ask(
    pair: Pair, equal: list[tuple[int, int]], differing: tuple[int, int] | None, direction: str
) -> Clash | Undecided | None:
    """Do the footprints meet with equal indices along `equal` and, along `differing`, f's index less (more) than g's?"""
    f, g = pair.f, pair.g
    left, right = _Side(f.base.copy()), _Side(g.base.copy())
    offsets = {**dict.fromkeys(equal, 0), **pair.offset}
    used_f: set[int] = set()
    used_g: set[int] = set()
    for (x, y), offset in offsets.items():
        used_f.add(x)
        used_g.add(y)
        low = np.maximum(g.low[:, y], f.low[:, x] - offset)
        high = np.minimum(g.high[:, y], f.high[:, x] - offset)
        step = f.coefs[:, x] - g.coefs[:, y]
        left.base += f.coefs[:, x] * offset + step * low
        left.add(step, high - low, ("joint", x, y, low))
    if differing is not None:
        x, y = differing
        used_f.add(x)
        used_g.add(y)
        if (f.coefs[:, x] != g.coefs[:, y]).any():
            return Undecided(f.rows)
        step = f.coefs[:, x]
        if direction == "less":
            low = np.maximum(1, g.low[:, y] - f.high[:, x] + 1)
            right.base += step * low
            right.add(step, g.high[:, y] - f.low[:, x] - low, ("less", x, y, low))
        else:
            low = np.maximum(1, f.low[:, x] - g.high[:, y] + 1)
            left.base += step * low
            left.add(step, f.high[:, x] - g.low[:, y] - low, ("more", x, y, low))
    for side, lattice, used, name in ((left, f, used_f, "f"), (right, g, used_g, "g")):
        for axis in range(lattice.coefs.shape[1]):
            if axis not in used:
                side.base += lattice.coefs[:, axis] * lattice.low[:, axis]
                count = lattice.high[:, axis] - lattice.low[:, axis]
                side.add(lattice.coefs[:, axis], count, (name, axis, axis, lattice.low[:, axis]))
    p, q = left.patterns(f.elem_bytes), right.patterns(g.elem_bytes)
    answers = overlaps_batch(p, q)
    hits = np.flatnonzero(answers == OVERLAP)
    if len(hits):
        row = int(hits[0])
        found = overlap_witness(p.pattern(row), q.pattern(row))
        if isinstance(found, Witness):
            return _decode(pair, left, right, found, row)
        return Undecided(f.rows)
    return Undecided(f.rows) if (answers == UNKNOWN_PAIR).any() else None


def _decode(pair: Pair, left: _Side, right: _Side, found: Witness, row: int) -> Clash:
    f, g = pair.f, pair.g
    at_f: dict[int, int] = {}
    at_g: dict[int, int] = {}
    for side, indices in ((left, found.a), (right, found.b)):
        for (name, x, y, low), k in zip(side.meaning, indices, strict=True):
            value = int(low[row]) + k
            match name:
                case "f":
                    at_f[x] = value
                case "g":
                    at_g[x] = value
                case "joint":
                    at_g[y] = value
                    at_f[x] = value + pair.offset.get((x, y), 0)
                case "less":
                    at_f[x] = max(int(f.low[row, x]), int(g.low[row, y]) - value)
                    at_g[y] = at_f[x] + value
                case _:
                    at_g[y] = max(int(g.low[row, y]), int(f.low[row, x]) - value)
                    at_f[x] = at_g[y] + value
    first = tuple(at_f[i] for i in range(f.coefs.shape[1]))
    second = tuple(at_g[i] for i in range(g.coefs.shape[1]))
    return Clash(int(f.rows[row]), first, second)
