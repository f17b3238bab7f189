"""What the geometry tests compare with: sets of bytes, one by one."""

from __future__ import annotations

from itertools import product

from hypothesis import strategies as st

from racefree.access import Dim, Pattern

STEPS = st.sampled_from([-33, -20, -8, -7, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 33, 64])
DIMS = st.builds(Dim, STEPS, st.sampled_from([0, 1, 2, 2, 3, 3, 4, 5]))


def patterns(*, max_dims: int = 4) -> st.SearchStrategy[Pattern]:
    """Small patterns: mixed element sizes, negative and zero steps, misaligned bases, sometimes empty."""
    elem = st.sampled_from([1, 2, 3, 4, 8])
    return st.builds(Pattern, st.integers(-60, 160), elem, st.lists(DIMS, max_size=max_dims).map(tuple))


def elements(pattern: Pattern) -> list[tuple[tuple[int, ...], int]]:
    """(indices, first byte) of every element."""
    ranges = [range(dim.count) for dim in pattern.dims]
    return [
        (at, pattern.base_bytes + sum(k * dim.step_bytes for k, dim in zip(at, pattern.dims, strict=True)))
        for at in product(*ranges)
    ]


def bytes_of(pattern: Pattern) -> set[int]:
    """Every byte the pattern touches."""
    return {start + x for _, start in elements(pattern) for x in range(pattern.elem_bytes)}
