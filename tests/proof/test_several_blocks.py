"""A barrier holds within one block: where a program instance spans several, it is no reason for a proof."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

import racefree
from racefree.verdict import Status


@triton.jit
def rotate(x, STEP: tl.constexpr, BLOCK: tl.constexpr):
    base = tl.program_id(0) * STEP
    lane = tl.arange(0, BLOCK)
    v = tl.load(x + base + (lane + 1) % BLOCK)
    tl.debug_barrier()
    tl.store(x + base + lane, v)


@triton.jit
def add_one(x, BLOCK: tl.constexpr):
    at = x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(at)
    tl.debug_barrier()
    tl.store(at, v + 1)


@triton.jit
def publish(data, flag, out, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(data + lane, lane)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") != 1:
            pass
        tl.debug_barrier()
        tl.store(out + lane, tl.load(data + lane))


def decide(kernel: Any, *arguments: Any, **meta: Any) -> racefree.Launch:
    with racefree.trace(racefree.RaceDetector(compile=True, target="cuda:90")):
        kernel[(2,)](*arguments, **meta)
    return racefree.launches[-1]


def zeros(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.int32)


@pytest.mark.parametrize(("blocks", "status"), [(1, Status.OK), (2, Status.UNSUPPORTED)])
def test_lanes_that_only_a_barrier_orders(blocks: int, status: Status) -> None:
    launch = decide(rotate, zeros(1024), 256, 256, num_ctas=blocks)
    assert launch.verdict.status is status
    if blocks > 1:
        (refusal,) = [c.refusal for c in launch.verdict.configs]
        assert refusal is not None
        assert refusal.kind == "several-blocks"


@pytest.mark.parametrize(("blocks", "status"), [(1, Status.OK), (2, Status.UNSUPPORTED)])
def test_a_message_published_after_a_barrier(blocks: int, status: Status) -> None:
    assert decide(publish, zeros(256), zeros(1), zeros(256), 256, num_ctas=blocks).verdict.status is status


def test_what_needs_no_barrier_is_proved_all_the_same() -> None:
    assert decide(add_one, zeros(1024), 256, num_ctas=2).verdict.status is Status.OK


def test_a_race_between_programs_is_one_whatever_the_barriers() -> None:
    launch = decide(rotate, zeros(1024), 255, 256, num_ctas=2)
    assert launch.verdict.status is Status.RACES
    assert all(race.programs[0] != race.programs[1] for race in launch.races)
