"""Which footprints of a program share a byte: decided once for each pair of different footprints, not for each access."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.engines.program import I64, U8, AccessFlag, EngineProgram, Footprints
from racefree.engines.timeline import Ragged
from racefree.errors import Refused
from racefree.geometry import DISJOINT, UNKNOWN_PAIR, candidate_pairs, overlaps_batch

Pairs = tuple[I64, I64]

MOST_CANDIDATES = 500_000_000
MOST_CONFLICTS = 50_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Conflicts:
    """Footprint f may share a byte with `meets.values[meets.starts[f]:meets.starts[f + 1]]`, itself included.

    Only pairs of which at least one is ever written are listed. `undecided` marks the entries that are only possible.
    """

    meets: Ragged
    undecided: U8


def conflicts(program: EngineProgram) -> Conflicts:
    """The pairs of footprints that can conflict. O(f log f + candidates) for f footprints.

    Raises Refused ("too-many-pairs") when more byte ranges meet, or more footprints conflict, than can be looked at.
    """
    footprints = program.footprints
    count = len(footprints)
    accesses = program.accesses
    used = np.zeros(count, dtype=bool)
    used[accesses.footprint] = True
    written = np.zeros(count, dtype=bool)
    written[accesses.footprint[(accesses.flags & np.uint8(AccessFlag.WRITE)) != 0]] = True
    firsts: list[I64] = []
    seconds: list[I64] = []
    unknowns: list[npt.NDArray[np.bool_]] = []
    kept = 0
    for left, right in _candidates(footprints, np.flatnonzero(written), np.flatnonzero(used)):
        left, right, unknown = _meeting(footprints, left, right)
        kept += len(left)
        if kept > MOST_CONFLICTS:
            raise Refused("too-many-pairs", f"more than {MOST_CONFLICTS} pairs of footprints conflict")
        firsts.append(left)
        seconds.append(right)
        unknowns.append(unknown)
    first = np.concatenate(firsts) if firsts else np.zeros(0, dtype=np.int64)
    second = np.concatenate(seconds) if seconds else np.zeros(0, dtype=np.int64)
    unknown = np.concatenate(unknowns) if unknowns else np.zeros(0, dtype=bool)
    # Pairs come as (written, used): the other direction exists already when the second is written too.
    one_way = ~written[second]
    source = np.concatenate([first, second[one_way]])
    target = np.concatenate([second, first[one_way]])
    unknown = np.concatenate([unknown, unknown[one_way]])
    order = np.lexsort((target, source))
    starts = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=count))]).astype(np.int64)
    return Conflicts(Ragged(starts, target[order].astype(np.int32)), unknown[order].astype(np.uint8))


def _candidates(footprints: Footprints, written: I64, used: I64) -> Iterator[Pairs]:
    """Pairs (written, used) of one space whose byte ranges and partition ranges meet."""
    low, high = footprints.bytes.spans()
    low_row, high_row = footprints.partitions.spans()
    for of_space_w, of_space_u in _by_space(footprints, written, used):
        starts_and_ends = (low[of_space_w], high[of_space_w], low[of_space_u], high[of_space_u])
        for left, right in candidate_pairs(*starts_and_ends, limit=MOST_CANDIDATES):
            i, j = of_space_w[left], of_space_u[right]
            near = (low_row[i] < high_row[j]) & (low_row[j] < high_row[i])
            yield i[near], j[near]


def _by_space(footprints: Footprints, written: I64, used: I64) -> list[Pairs]:
    groups: list[Pairs] = []
    by_space_w = written[np.argsort(footprints.space[written], kind="stable")]
    by_space_u = used[np.argsort(footprints.space[used], kind="stable")]
    spaces, starts = np.unique(footprints.space[by_space_w], return_index=True)
    ends = np.append(starts[1:], len(by_space_w))
    left = np.searchsorted(footprints.space[by_space_u], spaces, side="left")
    right = np.searchsorted(footprints.space[by_space_u], spaces, side="right")
    for row in range(len(spaces)):
        groups.append((by_space_w[starts[row] : ends[row]], by_space_u[left[row] : right[row]]))
    return groups


def _meeting(footprints: Footprints, left: I64, right: I64) -> tuple[I64, I64, npt.NDArray[np.bool_]]:
    """The candidates that share a byte, and which of them are undecided."""
    unknown = np.zeros(len(left), dtype=bool)
    for patterns in (footprints.partitions, footprints.bytes):
        answers = overlaps_batch(patterns, patterns, pairs=(left, right))
        kept = answers != DISJOINT
        left, right, unknown = left[kept], right[kept], unknown[kept] | (answers[kept] == UNKNOWN_PAIR)
    return left, right, unknown
