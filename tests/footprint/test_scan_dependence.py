"""A running sum holds what earlier lanes loaded: that may order, and never makes a race certain."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import racefree
from racefree.verdict import Status


@triton.jit
def sum_onto_first(x, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    values = tl.load(x + lanes)
    sums = tl.cumsum(values, 0)
    tl.store(
        x + lanes - (BLOCK - 1), sums, mask=lanes == BLOCK - 1
    )  # the last lane writes the cell that the first has read


def test_a_store_of_a_running_sum_over_an_earlier_lane_is_no_certain_race() -> None:
    launch = racefree.analyze(sum_onto_first, torch.zeros(8, dtype=torch.int32), 8, grid=(1,), num_warps=1)
    assert launch.verdict.status is not Status.RACES
