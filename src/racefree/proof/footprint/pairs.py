"""Which executions inside one program instance may meet on a byte, before anything is said of their order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from racefree.errors import Refused
from racefree.graph.program import Access
from racefree.proof.footprint.shadow import Lattice, Points, Shadow
from racefree.proof.footprint.survey import Chunk
from racefree.proof.footprint.values import I64

PAIR_BUDGET = 50_000

NEVER = (np.iinfo(np.int64).max, np.iinfo(np.int64).min)
"""A span that meets no other."""


def may_meet(a: Access, b: Access) -> bool:
    return a.kind.writes or b.kind.writes


def pairs_that_may_meet(
    chunk: Chunk, shadows: dict[int, Shadow], rows: int, apart: frozenset[tuple[int, int]]
) -> list[tuple[int, int]]:
    """The positions of every two footprints (or of one twice) with executions in one program that may share a byte.

    `apart` holds accesses of which one program carries out one at most. Raises `Refused("overlap-budget")` for too many.
    """
    order = sorted(shadows)
    out = []
    for at, others in spans_that_meet([_row_spans(shadows[i], rows) for i in order]):
        for i, j in ((order[at], order[other]) for other in others):
            f, g = chunk.footprints[i], chunk.footprints[j]
            if not may_meet(f.access, g.access) or (f.access.index, g.access.index) in apart:
                continue
            if f.access.kind.atomic and g.access.kind.atomic and _aligned(shadows[i], shadows[j]):
                continue
            out.append((i, j))
            if len(out) > PAIR_BUDGET:
                raise Refused("overlap-budget", "too many executions inside one program may meet", f.access.site)
    return out


def spans_that_meet(spans: list[tuple[I64, I64]]) -> Iterator[tuple[int, list[int]]]:
    """For each of some footprints (lowest and past-highest byte per row), itself and the later ones it meets in some row.

    A loop that is stepped leaves thousands, most of which lie apart in all rows: these are told apart all at once.
    """
    lowest = np.array([low.min() for low, _ in spans])
    highest = np.array([high.max() for _, high in spans])
    for at, (low, high) in enumerate(spans):
        near = at + 1 + np.flatnonzero((lowest[at] < highest[at + 1 :]) & (lowest[at + 1 :] < highest[at]))
        yield at, [at, *(k for k in near.tolist() if ((low < spans[k][1]) & (spans[k][0] < high)).any())]


def _row_spans(part: Shadow, rows: int) -> tuple[I64, I64]:
    """Lowest and past-highest byte per row; what meets nothing where the row has none."""
    low, high = np.full(rows, NEVER[0]), np.full(rows, NEVER[1])
    if isinstance(part, Lattice):
        starts, ends = part.patterns().spans()
        low[part.rows], high[part.rows] = starts, ends
    else:
        heads = np.flatnonzero(np.diff(part.rows, prepend=-1))
        who = part.rows[heads]
        low[who] = np.minimum.reduceat(part.address, heads)
        high[who] = np.maximum.reduceat(part.address, heads) + part.elem_bytes
    return low, high


def _aligned(a: Shadow, b: Shadow) -> bool:
    size = a.elem_bytes
    if size != b.elem_bytes:
        return False
    for part in (a, b):
        address = part.address if isinstance(part, Points) else part.base
        if (address % size).any() or (isinstance(part, Lattice) and (part.coefs % size).any()):
            return False
    return True
