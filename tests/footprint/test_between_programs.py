"""Whether two programs share a byte, against the set of bytes each program touches."""

from __future__ import annotations

import random
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from launch_values import SITE

from racefree.access import Kind
from racefree.geometry import PatternArray
from racefree.graph.program import Access, Ptr, Value
from racefree.proof.footprint import between
from racefree.proof.footprint.between import Reach, meeting

SEEDS = st.integers(0, 1 << 32)


def reach(rng: random.Random, index: int) -> Reach:
    """A few programs with a few patterns each; strides as a rule keep programs apart, and sometimes not."""
    size, dims, owners = rng.choice([1, 2, 4]), rng.choice([0, 1, 2]), rng.randint(1, 5)
    stride = rng.choice([0, 4, 16, 32, 40])
    rows = [program for program in range(owners) for _ in range(rng.choice([1, 1, 2]))]
    rng.shuffle(rows)
    base = [100 + program * stride + rng.choice([0, 0, 0, 4, 8, 60]) for program in rows]
    steps = [[rng.choice([0, 1, 4, 8, -4, 12]) for _ in range(dims)] for _ in rows]
    counts = [[rng.choice([1, 2, 3]) for _ in range(dims)] for _ in rows]
    shape = (len(rows), dims)
    patterns = PatternArray(
        np.array(base, dtype=np.int64),
        np.full(len(rows), size, dtype=np.int64),
        np.array(steps, dtype=np.int64).reshape(shape),
        np.array(counts, dtype=np.int64).reshape(shape),
    )
    access = Access(index, Kind.STORE, Value(index, Ptr(size)), None, (), None, None, size, SITE)
    return Reach(access, patterns, np.array([p * 3 + 1 for p in rows], dtype=np.int64))


def touched(part: Reach) -> dict[int, set[int]]:
    out: dict[int, set[int]] = defaultdict(set)
    for row, program in enumerate(part.programs.tolist()):
        pattern = part.patterns.pattern(row)
        for at in product(*(range(dim.count) for dim in pattern.dims)):
            start = pattern.base_bytes + sum(d.step_bytes * k for d, k in zip(pattern.dims, at, strict=True))
            out[program] |= set(range(start, start + pattern.elem_bytes))
    return out


PATHS = {"runs": (1 << 21, 1 << 23), "pairs": (0, 1 << 23), "pairs refused": (0, 0)}
"""(runs written out at once, candidate pairs compared) that lead through each way of deciding."""


@pytest.mark.parametrize("path", sorted(PATHS))
@given(seed=SEEDS)
@settings(
    max_examples=150, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_a_meeting_is_found_exactly_where_two_programs_share_a_byte(
    path: str, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    runs, pairs = PATHS[path]
    monkeypatch.setattr(between, "CHEAP_RUNS", runs)
    monkeypatch.setattr(between, "MOST_PAIRS", pairs)
    rng = random.Random(seed)
    a = reach(rng, 0)
    b = a if rng.random() < 0.4 else reach(rng, 1)
    left, right = touched(a), touched(b)
    shared = {(p, q): left[p] & right[q] for p in left for q in right if p != q and left[p] & right[q]}
    found = meeting(a, b)
    if found is None:
        assert not shared
    else:
        assert found.byte in shared[(found.first, found.second)]
