"""A data dependence orders one replica of a load; that the others load before the store as well is an assumption.

Each kernel is asked with the barrier that makes it unnecessary and without, by every rung that can prove it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
import triton
from replicated_kernels import copy, reduced, shifted, update, update_scalar, update_under_lock

import racefree
from racefree.analysis import Analyst
from racefree.config import settings
from racefree.launch import Launch
from racefree.triton.capture import capture_one
from racefree.verdict import REPLICAS_LOAD_FIRST, RaceVerdict, Status

SCOPES = pytest.mark.parametrize("scope", ["launch", "any"])


def ints(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.int32)


def decided(kernel: Any, *arguments: Any, scope: str, grid: int = 1, lanes: str = "default", warps: int = 4) -> Launch:
    captured = capture_one(kernel, arguments, {"num_warps": warps}, (grid,), "cuda:80")
    return Analyst(settings(scope=scope, lanes=lanes)).decide(captured).launch


def assumed(verdict: RaceVerdict) -> bool:
    assert verdict.status is Status.OK
    return REPLICAS_LOAD_FIRST in verdict.qualifiers


@SCOPES
@pytest.mark.parametrize("fenced", [False, True])
@pytest.mark.parametrize(
    ("elements", "warps", "replicated"), [(16, 4, True), (64, 4, True), (64, 2, False), (128, 4, False)]
)
def test_a_tile_of_fewer_elements_than_threads(
    scope: str, fenced: bool, elements: int, warps: int, replicated: bool
) -> None:
    def asked(lanes: str) -> RaceVerdict:
        arguments = (update, ints(elements), ints(elements), elements, fenced)
        return decided(*arguments, warps=warps, scope=scope, lanes=lanes).verdict

    assert assumed(asked("default")) == (replicated and not fenced)
    assert asked("strict").status is (Status.RACES if replicated and not fenced else Status.OK)


@SCOPES
@pytest.mark.parametrize("fenced", [False, True])
def test_a_scalar(scope: str, fenced: bool) -> None:
    def asked(lanes: str) -> Launch:
        return decided(update_scalar, ints(1), ints(128), fenced, scope=scope, lanes=lanes)

    assert assumed(asked("default").verdict) == (not fenced)
    strict = asked("strict")
    assert strict.verdict.status is (Status.OK if fenced else Status.RACES)
    assert [(r.race_type, r.witness) for r in strict.races] == ([] if fenced else [("WAR", "confirmed")])


@SCOPES
@pytest.mark.parametrize("fenced", [False, True])
def test_a_scalar_under_a_lock(scope: str, fenced: bool) -> None:
    def asked(lanes: str) -> RaceVerdict:
        return decided(update_under_lock, ints(1), ints(1), fenced, grid=3, scope=scope, lanes=lanes).verdict

    assert assumed(asked("default")) == (not fenced)
    assert asked("strict").status is (Status.OK if fenced else Status.RACES)


@SCOPES
def test_a_scalar_that_goes_elsewhere_assumes_nothing(scope: str) -> None:
    assert not assumed(decided(copy, ints(1), ints(1), scope=scope).verdict)


@pytest.mark.parametrize("warps", [(1, 4), (4, 1), (2, 1, 4)])
def test_a_proof_is_shared_with_configs_of_fewer_threads_alone(warps: tuple[int, ...]) -> None:
    """One warp has a thread for each of 32 elements; more warps have replicas."""
    tuned = triton.autotune([triton.Config({}, num_warps=w) for w in warps], key=[])(update)
    launch = racefree.analyze(tuned, ints(32), ints(32), 32, False, grid=(1,))
    said = {w: REPLICAS_LOAD_FIRST in c.qualifiers for w, c in zip(warps, launch.verdict.configs, strict=True)}
    assert said == {w: w > 1 for w in warps}


def test_no_proof_for_one_block_is_shared_with_several() -> None:
    """A barrier does not reach the other block of an instance."""
    tuned = triton.autotune([triton.Config({}, num_ctas=n) for n in (1, 2)], key=[])(shifted)
    launch = racefree.analyze(tuned, ints(1024), 512, grid=(1,), target="cuda:90")
    assert [c.status for c in launch.verdict.configs] == [Status.OK, Status.UNSUPPORTED]


@SCOPES
@pytest.mark.parametrize("stored", ["its maximum", "another maximum", "no maximum"])
def test_a_small_tile_that_is_reduced_before_it_is_overwritten(scope: str, stored: str) -> None:
    """What is stored depends on every element through the reduction, or on none."""

    def asked(lanes: str) -> RaceVerdict:
        return decided(reduced, ints(16), ints(17), 16, stored, scope=scope, lanes=lanes).verdict

    assert asked("strict").status is Status.RACES
    if stored == "its maximum":
        assert assumed(asked("default"))
    else:
        assert asked("default").status is Status.RACES
