"""A store to an unknown place hides no race elsewhere, and is never part of a proof."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import racefree
from racefree.verdict import Status


@triton.jit
def scattered(x, places, y, step, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    p = tl.program_id(0)
    tl.store(x + p * step + lanes, p)
    place = (tl.load(places + p * BLOCK + lanes) * 100).to(tl.int32)
    tl.store(y + place, p)


@triton.jit
def steered(table, y, step, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    p = tl.program_id(0)
    place = (tl.load(y + 64 + lanes) * 100).to(tl.int32)
    tl.store(table + place, 7)
    first = tl.load(table + p)
    tl.store(y + first + lanes, 1.0)


def decide(step: int) -> racefree.Launch:
    x, y = torch.zeros(64, dtype=torch.int32), torch.zeros(64, dtype=torch.int32)
    return racefree.analyze(scattered, x, torch.zeros(64), y, step, 16, grid=(4,))


def test_a_race_beside_an_unknown_place_is_reported() -> None:
    launch = decide(15)
    assert launch.verdict.status is Status.RACES
    (race,) = launch.races
    assert (race.race_type, race.first.tensor, race.first.element) == ("WAW", "x", 15)


def test_without_a_race_elsewhere_the_unknown_place_is_named() -> None:
    launch = decide(16)
    assert launch.verdict.status is Status.UNSUPPORTED
    (refusal,) = [c.refusal for c in launch.verdict.configs]
    assert refusal is not None
    assert refusal.kind == "indirect-address"


def test_what_an_unknown_place_may_overwrite_is_not_relied_on() -> None:
    table, y = torch.zeros(4, dtype=torch.int32), torch.zeros(128)
    launch = racefree.analyze(steered, table, y, 16, 16, grid=(4,))
    assert launch.verdict.status is Status.UNSUPPORTED
