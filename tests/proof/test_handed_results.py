"""The result of an atomic on a scalar comes with a barrier where it is used: what that orders, and what it does not."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
import triton.language as tl

from racefree.graph.program import Barrier, walk
from racefree.proof.handed_results import with_result_barriers
from racefree.proof.rungs import Options, decide
from racefree.triton.capture import capture_one
from racefree.ttir.read import read_program
from racefree.verdict import RaceConfigVerdict, Status


@triton.jit
def looked_at(x, count, out, USE: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 32)
    tl.store(x + p * 32, p)
    drawn = tl.atomic_add(count, 1, sem="relaxed")
    if USE == "print":
        tl.device_print("drawn", drawn)
    elif USE == "assume":
        tl.assume(drawn >= 0)
    elif USE == "assert":
        tl.device_assert(drawn >= 0)
    tl.store(out + p * 32 + lane, tl.load(x + p * 32 + lane))


@triton.jit
def asserted_tile(x, out):
    lane = tl.arange(0, 32)
    tl.store(x, 1)
    tl.device_assert(lane >= tl.load(out))
    tl.store(out + lane, tl.load(x + lane))


@triton.jit
def read_back(x, count, out, USED: tl.constexpr, BEFORE: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 32)
    drawn = 0
    if not BEFORE:
        drawn = tl.atomic_add(count, 1, sem="relaxed")
    tl.store(x + p * 32, p)
    if BEFORE:
        drawn = tl.atomic_add(count, 1, sem="relaxed")
    if not USED:
        drawn = 0
    tl.store(out + p * 32 + lane, tl.load(x + p * 32 + lane) + drawn)


@triton.jit
def of_tiles(x, counts, out):
    p = tl.program_id(0)
    lane = tl.arange(0, 32)
    tl.store(x + p * 32, p)
    drawn = tl.atomic_add(counts + lane, 1, sem="relaxed")
    tl.store(out + p * 32 + lane, tl.load(x + p * 32 + lane) + drawn)


@triton.jit
def carried(x, count, out, rounds):
    p = tl.program_id(0)
    lane = tl.arange(0, 32)
    drawn = 0
    for _ in range(rounds):
        drawn = tl.atomic_add(count, 1, sem="relaxed")
    tl.store(out + p * 32 + lane, drawn)


@triton.jit
def last_stores_late(parts, count, out):
    p = tl.program_id(0)
    if tl.atomic_add(count, 1, sem="acq_rel") == tl.num_programs(0) - 1:
        tl.store(parts + p, p)
        lane = tl.arange(0, 4)
        tl.store(out, tl.sum(tl.load(parts + lane), 0))


def ints(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.int32)


def verdict(kernel: Any, grid: int, *, target: str = "cuda:80", blocks: int = 1, **arguments: Any) -> RaceConfigVerdict:
    config = capture_one(kernel, (), {**arguments, "num_ctas": blocks}, (grid,), target=target).configs[0]
    assert config.module is not None
    assert config.facts is not None
    return decide(read_program(config.module), config.facts, Options())


def barriers(kernel: Any, **arguments: Any) -> int:
    config = capture_one(kernel, (), arguments, (2,), target="cuda:80").configs[0]
    assert config.module is not None
    program = with_result_barriers(read_program(config.module))
    return sum(isinstance(statement, Barrier) for statement in walk(program.body))


@pytest.mark.parametrize("used", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_what_comes_before_and_after_a_result_that_is_used(used: bool, before: bool) -> None:
    found = verdict(read_back, 2, x=ints(64), count=ints(1), out=ints(64), USED=used, BEFORE=before)
    assert found.status is (Status.OK if used and before else Status.RACES)


@pytest.mark.parametrize("debug", [True, False])
@pytest.mark.parametrize("use", ["print", "assume", "assert", "none"])
def test_a_result_that_is_only_looked_at(use: str, debug: bool) -> None:
    """An assertion is there in debug builds only, and so is the barrier it brings."""
    found = verdict(looked_at, 2, x=ints(64), count=ints(1), out=ints(64), USE=use, debug=debug)
    assert found.status is (Status.OK if use in ("print", "assume") else Status.RACES)


@pytest.mark.parametrize("debug", [True, False])
def test_an_assertion_on_a_tile_is_no_barrier_to_rely_on(debug: bool) -> None:
    assert verdict(asserted_tile, 1, x=ints(32), out=ints(32), debug=debug).status is Status.RACES


@pytest.mark.parametrize("before", [True, False])
def test_a_target_where_nothing_was_measured(before: bool) -> None:
    arguments = {"x": ints(64), "count": ints(1), "out": ints(64), "USED": True, "BEFORE": before}
    found = verdict(read_back, 2, target="hip:gfx942", **arguments)
    if before:
        assert found.refusal is not None
        assert found.refusal.kind == "potential-race"
        assert "was not measured for this Triton and target" in found.refusal.reason
    else:
        assert found.status is Status.RACES


def test_several_blocks() -> None:
    arguments = {"x": ints(64), "count": ints(1), "out": ints(64), "USED": True, "BEFORE": True}
    assert verdict(read_back, 2, target="cuda:90", blocks=2, **arguments).status is Status.UNSUPPORTED


def test_the_result_of_an_atomic_on_a_tile_stays_with_its_lanes() -> None:
    assert barriers(of_tiles, x=ints(64), counts=ints(32), out=ints(64)) == 0
    assert verdict(of_tiles, 2, x=ints(64), counts=ints(32), out=ints(64)).status is Status.RACES


def test_a_result_that_a_loop_carries_out() -> None:
    assert barriers(carried, x=ints(64), count=ints(1), out=ints(64), rounds=3) == 1


def test_a_race_inside_one_of_several_instances_that_load_alike_is_told_of_the_one() -> None:
    found = verdict(last_stores_late, 4, parts=ints(4), count=ints(1), out=ints(1))
    assert found.status is Status.RACES
    (race,) = found.races
    assert race.programs[0] == race.programs[1]
    assert race.first.element == race.programs[0][0]
