"""Plain loads whose value decides a branch, of memory that other program instances write."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

import racefree
from racefree.verdict import ASSUMES_TERMINATION, Status


@triton.jit
def first_initialises(total, started, lock, EARLY: tl.constexpr, FENCED: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    mine = lanes + tl.program_id(0)
    if EARLY:
        seen = tl.load(started)  # not under the lock
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    if not EARLY:
        seen = tl.load(started)
    tl.debug_barrier()
    if seen == 0:
        tl.store(started, 1)
        tl.store(total + lanes, mine)
    else:
        tl.store(total + lanes, tl.load(total + lanes) + mine)
    if FENCED:
        tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem="release")


def _decide(programs: int, *, early: bool, fenced: bool) -> racefree.Launch:
    cells = [torch.zeros(n, dtype=torch.int32) for n in (256, 1, 1)]
    return racefree.analyze(first_initialises, *cells, early, fenced, 256, grid=(programs,))


@pytest.mark.parametrize("programs", [1, 2, 3])
@pytest.mark.parametrize("early", [False, True])
@pytest.mark.parametrize("fenced", [False, True])
def test_the_first_holder_of_the_lock_initialises(programs: int, early: bool, fenced: bool) -> None:
    """Clean exactly when the flag is read under the lock and the stores are fenced before it is given back."""
    launch = _decide(programs, early=early, fenced=fenced)
    clean = programs == 1 or (fenced and not early)
    assert launch.verdict.status is (Status.OK if clean else Status.RACES), launch.verdict.configs[0].refusal
    if clean and programs > 1:
        assert ASSUMES_TERMINATION in launch.verdict.qualifiers
    assert all(race.witness == "confirmed" for race in launch.races)


@triton.jit
def places_by_lane(kinds, places, out, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = tl.atomic_add(places + tl.load(kinds + lanes), 1)
    tl.store(out + place, lanes)


def test_the_reason_that_says_more_is_kept() -> None:
    kinds = torch.arange(64, dtype=torch.int32) % 4
    places, out = (torch.zeros(n, dtype=torch.int32) for n in (4, 64))
    (verdict,) = racefree.analyze(places_by_lane, kinds, places, out, BLOCK=32, grid=(2,)).verdict.configs
    assert verdict.refusal is not None
    assert verdict.refusal.kind == "indirect-address"
    assert verdict.refusal.reason.endswith("it is what an atomic observed")
