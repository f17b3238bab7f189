"""Whether two different program instances touch one byte, for a pair of accesses and all programs of the launch."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from racefree.errors import Refused
from racefree.geometry import (
    OVERLAP,
    UNKNOWN_PAIR,
    PatternArray,
    candidate_pairs,
    candidate_pairs_within,
    count_candidate_pairs,
    merge_runs,
    overlaps_batch,
    runs_of,
)
from racefree.geometry.intervals import Runs, first_meeting_runs
from racefree.graph.program import Access
from racefree.proof.footprint.values import I64

CHEAP_RUNS = 1 << 21
MOST_RUNS = 1 << 25
MOST_PAIRS = 1 << 23


@dataclass(frozen=True, slots=True, eq=False)
class Reach:
    """All bytes one access may (or must) touch in the whole launch: patterns and the program that owns each.

    A program is numbered by its linear id. `cluster` names the storages the addresses are offsets into.
    """

    access: Access
    patterns: PatternArray
    programs: I64
    phases: frozenset[int | None] = frozenset({None})
    """The residues of the elements' addresses by their size; None stands for any."""


@dataclass(frozen=True, slots=True)
class Meeting:
    """Program `first` (through the first access) and `second` (through the second) both touch `byte`."""

    first: int
    second: int
    byte: int


def meeting(a: Reach, b: Reach) -> Meeting | None:
    """Two different programs that share a byte through these accesses. Raises `Refused` when that cannot be decided."""
    alone = a is b
    if alone and _apart(a):
        return None
    runs_a = runs_of(a.patterns, limit=CHEAP_RUNS)
    runs_b = runs_a if alone else runs_of(b.patterns, limit=CHEAP_RUNS)
    if runs_a is not None and runs_b is not None:
        return _by_runs(a, b, runs_a, runs_b)
    found = _by_pairs(a, b)
    if isinstance(found, Meeting) or found is None:
        return found
    runs_a = runs_of(a.patterns, limit=MOST_RUNS)
    runs_b = runs_a if alone else runs_of(b.patterns, limit=MOST_RUNS)
    if runs_a is None or runs_b is None:
        raise Refused(
            "overlap-budget", "too many byte ranges of different programs meet to compare them", a.access.site
        )
    return _by_runs(a, b, runs_a, runs_b)


def _apart(a: Reach) -> bool:
    """True when the programs' byte ranges, in the order of their starts, do not meet at all."""
    starts, ends = a.patterns.spans()
    if len(starts) > 1 and (starts[1:] < starts[:-1]).any():
        order = np.argsort(starts, kind="stable")
        starts, ends = starts[order], ends[order]
    return bool((ends[:-1] <= starts[1:]).all())


def _owned(runs: Runs, programs: I64) -> Runs:
    return merge_runs(runs.starts, runs.ends, programs[runs.owner])


def _by_runs(a: Reach, b: Reach, runs_a: Runs, runs_b: Runs) -> Meeting | None:
    left = _owned(runs_a, a.programs)
    if a is b:
        found = first_meeting_runs(*left)
        return None if found is None else Meeting(found.first, found.second, found.byte)
    right = _owned(runs_b, b.programs)
    total = count_candidate_pairs(left.starts, left.ends, right.starts, right.ends)
    if total == 0:
        return None
    low = min(int(left.starts.min()), int(right.starts.min()))
    width = max(int(left.ends.max()), int(right.ends.max())) - low + 1
    ids, ranks = np.unique(np.concatenate([left.owner, right.owner]), return_inverse=True)
    if width * len(ids) < 1 << 62:
        shift_left, shift_right = ranks[: len(left.owner)] * width, ranks[len(left.owner) :] * width
        same = count_candidate_pairs(
            left.starts - low + shift_left,
            left.ends - low + shift_left,
            right.starts - low + shift_right,
            right.ends - low + shift_right,
        )
        if same == total:
            return None
    for i, j in candidate_pairs(left.starts, left.ends, right.starts, right.ends):
        different = np.flatnonzero(left.owner[i] != right.owner[j])
        if len(different):
            at_a, at_b = int(i[different[0]]), int(j[different[0]])
            byte = max(int(left.starts[at_a]), int(right.starts[at_b]))
            return Meeting(int(left.owner[at_a]), int(right.owner[at_b]), byte)
    return None


def _by_pairs(a: Reach, b: Reach) -> Meeting | Refused | None:
    """Candidate pairs by byte range, each decided exactly; a Refused value when they are too many or undecided."""
    low_a, high_a = a.patterns.spans()
    try:
        if a is b:
            chunks = candidate_pairs_within(low_a, high_a, a.programs, limit=MOST_PAIRS)
        else:
            low_b, high_b = b.patterns.spans()
            chunks = candidate_pairs(low_a, high_a, low_b, high_b, limit=MOST_PAIRS)
        doubt = False
        for i, j in chunks:
            different = a.programs[i] != b.programs[j]
            i, j = i[different], j[different]
            if not len(i):
                continue
            answers = overlaps_batch(a.patterns, b.patterns, pairs=(i, j))
            hits = np.flatnonzero(answers == OVERLAP)
            if len(hits):
                return _exactly(a, b, int(i[hits[0]]), int(j[hits[0]]))
            doubt = doubt or bool((answers == UNKNOWN_PAIR).any())
    except Refused as refusal:
        return refusal
    return Refused("overlap-budget", "whether two patterns share a byte was not decided") if doubt else None


def _exactly(a: Reach, b: Reach, row_a: int, row_b: int) -> Meeting:
    from racefree.geometry import Witness, overlap_witness

    found = overlap_witness(a.patterns.pattern(row_a), b.patterns.pattern(row_b))
    if not isinstance(found, Witness):
        raise Refused("overlap-budget", "a shared byte was found and could not be shown", a.access.site)
    return Meeting(int(a.programs[row_a]), int(b.programs[row_b]), found.byte)
