"""A store to an unknown place hides no race elsewhere, and is never part of a proof."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

import racefree
from racefree.verdict import ASSUMES_IN_BOUNDS, READS_CONTENTS, Status


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


@triton.jit
def counted(values, bins, WIDE: tl.constexpr, HALVES: tl.constexpr, PLAIN: tl.constexpr, SCOPE: tl.constexpr):
    place = (tl.load(values + tl.program_id(0)) * 7).to(tl.int32)
    at = bins + place
    if HALVES:
        at = (bins.to(tl.pointer_type(tl.int16), bitcast=True) + place).to(tl.pointer_type(tl.int32), bitcast=True)
    tl.atomic_add(at, 1, scope=SCOPE)
    if WIDE:
        tl.atomic_or(bins.to(tl.pointer_type(tl.int64), bitcast=True) + place, 1)
    if PLAIN:
        tl.store(values + tl.program_id(0), tl.load(bins).to(tl.float32))


@pytest.mark.parametrize(
    ("how", "excluded"),
    [((), True), (("WIDE",), False), (("HALVES",), False), (("PLAIN",), False), (("BLOCK",), False)],
)
def test_atomics_on_whole_elements_exclude_each_other_wherever_they_are(
    how: tuple[str, ...], *, excluded: bool
) -> None:
    given = {name: name in how for name in ("WIDE", "HALVES", "PLAIN")}
    scope = "cta" if "BLOCK" in how else "gpu"
    bins = torch.zeros(64, dtype=torch.int32)
    verdict = racefree.analyze(counted, torch.zeros(4), bins, SCOPE=scope, grid=(4,), **given).verdict
    assert (verdict.status is Status.OK) == excluded
    assert (ASSUMES_IN_BOUNDS in verdict.qualifiers) == excluded


@triton.jit
def looked_back(x, y, states, BLOCK: tl.constexpr, PLAIN: tl.constexpr):
    """The prefix sums of decoupled look-back: sum and flag are one word, so that nothing has to be ordered."""
    p = tl.program_id(0)
    lanes = p * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + lanes)
    total = tl.sum(values)
    tl.atomic_xchg(states + p, (total << 2) | (2 if p == 0 else 1), sem="relaxed")
    before = 0
    if p > 0:
        at = p - 1
        looking = True
        while looking:
            state = tl.load(states + at, volatile=True) if PLAIN else tl.atomic_or(states + at, 0, sem="relaxed")
            if state & 3:
                before += state >> 2
                at -= 1
                looking = state & 1 == 1
        tl.atomic_xchg(states + p, ((before + total) << 2) | 2, sem="relaxed")
    tl.store(y + lanes, tl.cumsum(values) + before)


@pytest.mark.parametrize("in_place", [False, True])
def test_a_look_back_through_single_words_is_proved(*, in_place: bool) -> None:
    x = torch.ones(20 * 128, dtype=torch.int32)
    y = x if in_place else torch.zeros_like(x)
    launch = racefree.analyze(looked_back, x, y, torch.zeros(20, dtype=torch.int32), 128, False, grid=(20,))
    assert launch.verdict.status is Status.OK
    plain = racefree.analyze(looked_back, x, y, torch.zeros(20, dtype=torch.int32), 128, True, grid=(20,))
    assert plain.verdict.status is not Status.OK


@triton.jit
def jumped(parents, moves, BLOCK: tl.constexpr, LATE: tl.constexpr):
    """Every lane that moves takes its grandparent for its parent, in place."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if LATE:
        tl.store(parents + at, tl.load(parents + at))
    tl.store(parents + at, tl.load(parents + tl.load(parents + at)), mask=tl.load(moves + at) != 0)


@pytest.mark.parametrize("seed", range(12))
def test_addresses_read_before_all_writes_are_those_of_the_launch(seed: int) -> None:
    """A lane meets another exactly if it reads the element that this one moves."""
    draw = torch.Generator().manual_seed(seed)
    parents = torch.arange(128, dtype=torch.int32)
    moves = torch.randint(0, 2, (128,), generator=draw, dtype=torch.int32)
    for lane in torch.randint(0, 128, (seed % 4,), generator=draw):
        parents[lane] = int(torch.randint(0, 128, (1,), generator=draw))
    met = {(i, p) for i, p in enumerate(parents.tolist()) if i != p and moves[p]}
    launch = racefree.analyze(jumped, parents, moves, 32, False, grid=(4,), num_warps=1)
    assert launch.verdict.status is (Status.RACES if met else Status.OK)
    assert met or READS_CONTENTS in launch.verdict.qualifiers
    for race in launch.races:
        reader, writer = (race.first, race.second) if race.second.write else (race.second, race.first)
        place = [32 * pid[0] + side.lane[0] for pid, side in zip(race.programs, (race.first, race.second), strict=True)]
        assert set(place) in [set(each) for each in met]
        assert (reader.element, race.witness) == (writer.element, "confirmed")


def test_an_address_that_may_be_overwritten_before_it_is_read_is_not_taken_for_known() -> None:
    parents, moves = torch.arange(128, dtype=torch.int32), torch.ones(128, dtype=torch.int32)
    launch = racefree.analyze(jumped, parents, moves, 32, True, grid=(4,), num_warps=1)
    assert launch.verdict.status is Status.UNSUPPORTED


@triton.jit
def handed_over(table, x, flag, BLOCK: tl.constexpr):
    """The second program reads from the table what the first has put there, though its load stands first."""
    lanes = tl.arange(0, BLOCK)
    if tl.program_id(0) == 1:
        while tl.atomic_add(flag, 0, sem="acquire") == 0:
            pass
        tl.store(x + tl.load(table) * BLOCK + lanes, 1)
    else:
        tl.store(table, 1)
        tl.store(x + lanes, 2)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")


def test_a_load_that_has_to_wait_for_a_write_is_not_early() -> None:
    table, flag = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    launch = racefree.analyze(handed_over, table, torch.zeros(256, dtype=torch.int32), flag, 128, grid=(2,))
    assert launch.verdict.status is not Status.RACES
