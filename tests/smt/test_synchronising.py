"""Programs that wait for each other, for any grid: proved exactly where a formula says so, and never where a grid races.

The schedule rung goes through all interleavings at small grids and is the judge; a proof must agree with it at each of them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import sync_kernels as k  # noqa: E402

from racefree.graph.launch import LaunchFacts  # noqa: E402
from racefree.graph.program import Program  # noqa: E402
from racefree.proof import schedule  # noqa: E402
from racefree.proof.symbolic_rungs import strengthen  # noqa: E402
from racefree.triton.capture import capture_one  # noqa: E402
from racefree.ttir.read import read_program  # noqa: E402
from racefree.verdict import ASSUMES_TERMINATION, READS_CONTENTS, ProofScope  # noqa: E402

T0, T1 = ProofScope.ANY_PARAMS_ANY_GRID, ProofScope.THIS_PARAMS_ANY_GRID
BUDGET = schedule.Budget(transitions=4000)


def ints(n: int, value: int = 0) -> Any:
    return torch.full((n,), value, dtype=torch.int32)


def launch(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> tuple[Program, LaunchFacts]:
    captured = capture_one(kernel, (), arguments, grid, target="cuda:80").configs[0]
    assert captured.module is not None
    assert captured.facts is not None
    return read_program(captured.module), captured.facts


def exactly(program: Program, facts: LaunchFacts, grids: range) -> Iterator[str]:
    """What going through all interleavings finds at each grid."""
    for n in grids:
        result = schedule.decide(program, replace(facts, grid=(n, *facts.grid[1:])), budget=BUDGET)
        hangs = result.refusal is not None and result.refusal.kind == "vacuous"
        yield "hangs" if hangs else result.status


def check(
    kernel: Any, arguments: dict[str, Any], scope: ProofScope | None, *, grid: tuple[int, ...] = (2,), most: int = 4
) -> None:
    """Proved for `scope`, or not (None) for a reason some grid up to `most` shows; the exact answers never contradict."""
    program, facts = launch(kernel, grid, arguments)
    got = strengthen(program, facts, decided=True, scale=5.0)
    said = list(exactly(program, facts, range(1, most + 1)))
    if scope is None:
        assert got.status == "passed"
        assert {"races", "hangs", "passed"} & set(said), "clean as far as all interleavings tell"
        return
    assert (got.status, got.scope) == ("proved", scope)
    assert "races" not in said
    assert "proved" in said[1:]


ON = {"REL": "release", "ACQ": "acquire", "SCOPE": "gpu", "FENCE": 1, "OTHER": 0, "WANTED": 1}
HAND_OVERS = [
    dict(zip(("REL", "ACQ", "FENCE"), each, strict=True))
    for each in product(("release", "relaxed"), ("acquire", "relaxed"), (1, 0))
] + [
    {"SCOPE": "cta"},
    {"OTHER": 1},
    {"WANTED": 0},
    {"REL": "acquire"},
    {"ACQ": "release"},
    {"REL": "acq_rel", "ACQ": "acq_rel"},
]


@pytest.mark.parametrize("changed", HAND_OVERS, ids=str)
def test_a_flag_hands_over_what_was_written_before(changed: dict[str, Any]) -> None:
    sync = {**ON, **changed}
    clean = sync["REL"] in ("release", "acq_rel") and sync["ACQ"] in ("acquire", "acq_rel")
    clean = clean and sync["FENCE"] == 1 and sync["SCOPE"] == "gpu" and not sync["OTHER"] and sync["WANTED"] == 1
    check(k.handed_over, {"data": ints(128), "flag": ints(2), "out": ints(640), **sync}, T1 if clean else None)


def test_a_flag_that_is_set_before_hands_over_nothing() -> None:
    check(k.handed_over, {"data": ints(128), "flag": ints(2, 1), "out": ints(640), **ON}, None)


def test_what_a_flag_proof_assumes() -> None:
    program, facts = launch(k.handed_over, (20,), {"data": ints(128), "flag": ints(2), "out": ints(2560), **ON})
    got = strengthen(program, facts, decided=False)
    assert got.scope is T1
    assert {ASSUMES_TERMINATION, READS_CONTENTS} <= set(got.qualifiers)


ROWS = [*product(("acquire", "relaxed"), ("release", "relaxed"), (1, 0), (1,)), ("acquire", "release", 1, 2)]


@pytest.mark.parametrize(("acq", "rel", "fence", "back"), ROWS)
def test_a_row_of_programs(acq: str, rel: str, fence: int, back: int) -> None:
    clean = (acq, rel, fence, back) == ("acquire", "release", 1, 1)
    arguments = {"x": ints(128), "flags": ints(8), "ACQ": acq, "REL": rel, "FENCE": fence, "BACK": back}
    check(k.one_after_another, arguments, T1 if clean else None)


ALL_WAIT = [*product(("release", "relaxed"), ("acquire", "relaxed"), (1, 0), (0,))]
ALL_WAIT += [("release", "acquire", 1, 1), ("release", "acquire", 1, -1)]


@pytest.mark.parametrize(("arrive", "wait", "fence", "less"), ALL_WAIT)
def test_all_wait_for_all(arrive: str, wait: str, fence: int, less: int) -> None:
    clean = (arrive, wait, fence, less) == ("release", "acquire", 1, 0)
    arguments = {
        "x": ints(640),
        "y": ints(640),
        "count": ints(1),
        "IN": arrive,
        "WAIT": wait,
        "FENCE": fence,
        "LESS": less,
    }
    check(k.all_wait, arguments, T1 if clean else None)


@pytest.mark.parametrize(("first", "less", "clean"), [(0, 1, True), (0, 2, False), (1, 1, False)])
def test_one_waits_for_all_others(first: int, less: int, clean: bool) -> None:
    """Whether program 1 exists hangs on the grid, so nothing is known of how many are not it."""
    arguments = {"x": ints(640), "y": ints(640), "count": ints(1), "LESS": less, "FIRST": first}
    program, facts = launch(k.one_waits_for_all, (3,), arguments)
    got = strengthen(program, facts, decided=True, scale=5.0)
    assert got.status == ("proved" if clean else "passed")
    assert not (clean and "races" in list(exactly(program, facts, range(1, 5))))


LOCKS = {"TAKE": "acquire", "GIVE": "release", "FENCE": 1, "FREE": 1, "LOCKS": 2, "CELLS": 2}
LOCKED = [
    dict(zip(("TAKE", "GIVE", "FENCE"), each, strict=True))
    for each in product(("acquire", "relaxed"), ("release", "relaxed"), (1, 0))
] + [{"FREE": 0}, {"LOCKS": 1}, {"LOCKS": 4}]  # fmt: skip


@pytest.mark.parametrize("changed", LOCKED, ids=str)
def test_a_lock(changed: dict[str, Any]) -> None:
    sync = {**LOCKS, **changed}
    clean = (sync["TAKE"], sync["GIVE"], sync["FENCE"]) == ("acquire", "release", 1) and sync["LOCKS"] <= sync["CELLS"]
    scope = T0 if sync["FREE"] else T1
    check(k.locked, {"acc": ints(512), "lock": ints(4), **sync}, scope if clean else None)


def test_a_lock_that_holds_neither_value_keeps_nobody_out() -> None:
    check(k.locked, {"acc": ints(512), "lock": ints(4, 7), **LOCKS, "FREE": 0}, None)


@pytest.mark.parametrize(("again", "late"), [(0, 0), (1, 0), (0, 1)])
def test_a_lock_taken_in_every_round(again: int, late: int) -> None:
    arguments = {"acc": ints(128), "lock": ints(1), "AGAIN": again, "LATE": late}
    check(k.locked_twice, arguments, None if again or late else T0, most=3)


@pytest.mark.parametrize(
    ("wait", "give", "fence", "step", "share"),
    [*product(("acquire", "relaxed"), ("release", "relaxed"), (1, 0), (1,), (1,)), ("acquire", "release", 1, 1, 2),
     ("acquire", "release", 1, 0, 1), ("acquire", "release", 1, 2, 1)],
)  # fmt: skip
def test_taking_turns(wait: str, give: str, fence: int, step: int, share: int) -> None:
    clean = (wait, give, fence, step, share) == ("acquire", "release", 1, 1, 1)
    arguments = {
        "acc": ints(128),
        "turn": ints(1),
        "WAIT": wait,
        "NEXT": give,
        "FENCE": fence,
        "STEP": step,
        "SHARE": share,
    }
    check(k.in_turn, arguments, T0 if clean else None)


ENDS = [(0, 0, 0, 0, "acquire"), (0, 0, 1, 0, "acquire"), (0, 7, 1, 0, "acquire"), (0, -1, 1, 0, "acquire"),
        (1, 0, 0, 0, "acquire"), (0, 0, 1, 1, "acquire"), (1, 1, 1, 0, "acquire"), (0, 0, 1, 0, "relaxed")]  # fmt: skip


@pytest.mark.parametrize("how", ["where", "branch", "swap"])
@pytest.mark.parametrize(("early", "left", "watch", "start", "look"), ENDS)
def test_whose_turn_is_the_last_may_leave_any_number(
    early: int, left: int, watch: int, start: int, look: str, how: str
) -> None:
    """Unless the counting starts behind the first turn, or somebody else may still be waiting."""
    clean = (early, start, look) == (0, 0, "acquire")
    arguments = {"acc": ints(256), "first": ints(128), "turn": ints(1, start)}
    arguments |= {"EARLY": early, "LEFT": left, "WATCH": watch, "LOOK": look, "HOW": how}
    check(k.in_turn_to_the_last, arguments, T1 if clean else None, grid=(3,))


@pytest.mark.parametrize(("share", "twice"), [(1, False), (2, False), (1, True)])
def test_a_turn_that_two_have_or_that_is_passed_on_twice(share: int, twice: bool) -> None:
    arguments = {"data": ints(8), "turn": ints(1), "out": ints(8), "SHARE": share, "TWICE": twice}
    check(k.told_by_the_one_before, arguments, T0 if (share, twice) == (1, False) else None, most=4)


@pytest.mark.parametrize("how", ["relaxed branch", "swap another"])
def test_turns_that_are_not_all_passed_on(how: str) -> None:
    arguments = {"acc": ints(256), "first": ints(128), "turn": ints(1), "EARLY": 0, "LEFT": 0, "WATCH": 1}
    check(k.in_turn_to_the_last, {**arguments, "LOOK": "acquire", "HOW": how}, None, grid=(3,))


@pytest.mark.parametrize(("n", "after"), [(2, 2), (3, 3), (2, 3)])
def test_turns_counted_modulo_their_number(n: int, after: int) -> None:
    arguments = {"acc": ints(640), "turn": ints(5), "N": n, "AFTER": after}
    check(k.wrapped_turns, arguments, T1 if after == n else T0, grid=(n,))


def test_turns_that_wrap() -> None:
    """A number found at the start stands behind those that come once the counter has wrapped, and yet comes first."""
    arguments = {"data": ints(1), "out": ints(640), "turn": ints(1), "STEP": 1 << 30}
    check(k.in_turn_past_the_end, arguments, None, grid=(5,), most=5)


@pytest.mark.parametrize(("draw", "give", "step"), [(1, "release", 1), (0, "release", 1), (1, "relaxed", 1)])
def test_being_served(draw: int, give: str, step: int) -> None:
    clean = (draw, give, step) == (1, "release", 1)
    arguments = {"acc": ints(128), "head": ints(1), "serving": ints(1), "DRAW": draw, "NEXT": give, "STEP": step}
    check(k.served, arguments, T0 if clean else None, most=3)


CLAIMS = [(1, 2, "release", "acquire"), (2, 2, "release", "acquire"), (1, 0, "release", "acquire"),
          (1, 2, "relaxed", "acquire"), (1, 2, "release", "relaxed"), (0, 2, "release", "acquire")]  # fmt: skip


@pytest.mark.parametrize(("new", "full", "rel", "acq"), CLAIMS)
def test_a_claimed_slot(new: int, full: int, rel: str, acq: str) -> None:
    clean = (new, full, rel, acq) == CLAIMS[0]
    arguments = {"data": ints(128), "slot": ints(1), "out": ints(640), "NEW": new, "FULL": full, "REL": rel, "ACQ": acq}
    check(k.claimed, arguments, T1 if clean else None, most=3)


@pytest.mark.parametrize(("sem", "rel"), list(product(("acquire", "relaxed"), ("release", "relaxed"))))
def test_order_is_passed_on(sem: str, rel: str) -> None:
    clean = (sem, rel) == ("acquire", "release")
    arguments = {"data": ints(128), "flag": ints(2), "out": ints(640), "SEM": sem, "REL": rel}
    check(k.passed_on, arguments, T1 if clean else None)


@pytest.mark.parametrize(
    ("sem", "look", "fence", "early"),
    [("release", "acquire", 1, 0), ("relaxed", "acquire", 1, 0), ("release", "relaxed", 1, 0), ("release", "acquire", 1, 1),
     ("release", "acquire", 0, 0)],
)  # fmt: skip
def test_looking_back(sem: str, look: str, fence: int, early: int) -> None:
    """The aggregate is one scalar, which the thread that releases has stored itself: it needs no barrier."""
    clean = (sem, look, early) == ("release", "acquire", 0)
    tensors = {name: ints(8) for name in ("x", "agg", "inc", "state", "out")}
    arguments = {**tensors, "SEM": sem, "LOOK": look, "FENCE": fence, "EARLY": early}
    check(k.looked_back, arguments, T1 if clean else None)


@pytest.mark.parametrize(
    ("sem", "early", "share"), [("acq_rel", 0, 1), ("relaxed", 0, 1), ("acq_rel", 1, 1), ("acq_rel", 0, 2)]
)
def test_the_last_program_of_a_tile(sem: str, early: int, share: int) -> None:
    clean = (sem, early, share) == ("acq_rel", 0, 1)
    arguments = {"part": ints(2048), "count": ints(4), "out": ints(512), "SEM": sem, "EARLY": early, "SHARE": share}
    check(k.last_of_a_tile, arguments, T1 if clean else None, grid=(2, 3), most=2)


RESETS = [
    dict(zip(("SEM", "HOW", "SOONER", "NEXT"), each, strict=True))
    for each in product(("acq_rel", "relaxed"), ("store", "xchg", "add"), (0, 1), (0, 1))
] + [{"SEM": "acq_rel", "HOW": "xchg", "SOONER": 0, "NEXT": 0, "AGAIN": again} for again in (1, 2)]


@pytest.mark.parametrize("changed", RESETS, ids=str)
def test_the_last_program_of_a_tile_resets_its_counter(changed: dict[str, Any]) -> None:
    arguments = {"part": ints(2048), "count": ints(4), "out": ints(512), "AGAIN": 0, **changed}
    program, facts = launch(k.last_of_a_tile_resets, (2, 3), arguments)
    got = strengthen(program, facts, decided=True, scale=5.0)
    clean = (arguments["SEM"], arguments["SOONER"], arguments["NEXT"], arguments["AGAIN"]) == ("acq_rel", 0, 0, 0)
    assert (got.status, got.scope) == (("proved", T1) if clean else ("passed", None))
    said = [
        schedule.decide(program, replace(facts, grid=grid), budget=BUDGET).status
        for grid in product((1, 2), (1, 2, 3), (1,))
    ]
    assert "proved" in said
    assert not clean or "races" not in said
    if arguments["SEM"] == "relaxed" or (arguments["HOW"] == "store" and not clean):
        assert "races" in said


def test_a_counter_of_which_nothing_is_known_before() -> None:
    arguments = {"part": ints(2048), "count": torch.tensor([0, 1, 0, 0], dtype=torch.int32), "out": ints(512)}
    constants = {"SEM": "acq_rel", "HOW": "store", "SOONER": 0, "NEXT": 0, "AGAIN": 0}
    program, facts = launch(k.last_of_a_tile_resets, (2, 3), {**arguments, **constants})
    assert strengthen(program, facts, decided=True, scale=5.0).status == "passed"
    assert schedule.decide(program, facts, budget=BUDGET).status == "races"


@pytest.mark.parametrize(("step", "half", "clean"), [(1, 1, True), (0, 1, False), (1, 2, False), (3, 1, False)])
def test_a_queue(step: int, half: int, clean: bool) -> None:
    arguments = {"head": ints(1), "out": ints(1280), "total": 5, "STEP": step, "HALF": half}
    program, facts = launch(k.queued, (2,), arguments)
    got = strengthen(program, facts, decided=True, scale=5.0)
    assert got.status == ("proved" if clean else "passed")
    assert not (clean and "races" in list(exactly(program, facts, range(1, 5))))


@pytest.mark.parametrize(("step", "scope"), [(4, T0), (0, T0), (2, None)])
def test_atomics_of_one_program_that_overlap_in_part(step: int, scope: ProofScope | None) -> None:
    arguments = {"data": torch.zeros(2048, dtype=torch.int8), "STEP": step}
    assert strengthen(*launch(k.counted_by_bytes, (2,), arguments), decided=True).scope == scope


def test_waiting_in_vain_proves_nothing() -> None:
    got = strengthen(*launch(k.never_set, (2,), {"data": ints(128), "flag": ints(1)}), decided=False)
    assert got.refusal is not None
    assert got.refusal.kind == "vacuous"


@pytest.mark.parametrize("kernel", [k.added_to, k.gathered_parts], ids=lambda kernel: kernel.fn.__name__)
@pytest.mark.parametrize(("rel", "shift"), [("release", 0), ("relaxed", 0), ("release", 1)])
def test_several_programs_to_a_tile(kernel: Any, rel: str, shift: int) -> None:
    tensors = {name: ints(1024) for name in kernel.arg_names if name in ("c", "parts", "lock")}
    check(kernel, {**tensors, "PER": 2, "REL": rel, "SHIFT": shift}, None if shift or rel == "relaxed" else T1)


@pytest.mark.parametrize(("rel", "acq"), [("release", "acquire"), ("relaxed", "acquire"), ("release", "relaxed")])
def test_a_look_that_a_loop_carries(rel: str, acq: str) -> None:
    clean = (rel, acq) == ("release", "acquire")
    arguments = {"c": ints(128), "parts": ints(640), "lock": ints(8), "n": 2, "REL": rel, "ACQ": acq}
    check(k.carried_look, arguments, T1 if clean else None)


@pytest.mark.parametrize("before", [0, 1])
def test_each_round_waits_for_as_long_as_it_takes(before: int) -> None:
    """Two rounds that looked equally often would leave each program a place of its own; but they need not."""
    program, facts = launch(k.counted_looks, (2,), {"out": ints(1024), "flag": ints(1), "BEFORE": before})
    got = strengthen(program, facts, decided=True, scale=5.0)
    assert got.status == ("passed" if before else "proved")


ROUNDS = {"IN": "release", "WAIT": "acquire", "FENCE": 1, "LESS": 0, "GROWS": 1, "BUFFERS": 2, "MASKED": 0}


@pytest.mark.parametrize(
    ("changed", "clean"),
    [
        ({}, True),
        ({"IN": "acq_rel", "WAIT": "acq_rel"}, True),
        ({"IN": "relaxed"}, False),
        ({"WAIT": "relaxed"}, False),
        ({"FENCE": 0}, False),
        ({"LESS": 1}, False),
        ({"GROWS": 0}, False),
        ({"BUFFERS": 1}, False),
        ({"MASKED": 1}, False),
    ],
)
def test_all_wait_for_all_in_every_round(changed: dict[str, Any], clean: bool) -> None:
    arguments = {"x": ints(8 * 128 * 2), "y": ints(8 * 128), "count": ints(1), "ROUNDS": 2, **ROUNDS, **changed}
    check(k.in_rounds, arguments, T1 if clean else None, most=2)


@pytest.mark.parametrize(("first", "second", "after"), [*product((1, 2), (1, 2), (1, 0))])
def test_all_wait_for_all_twice_in_every_round(first: int, second: int, after: int) -> None:
    arguments = {"x": ints(8 * 128), "y": ints(8 * 128), "count": ints(1), "ROUNDS": 2}
    arguments |= {"FIRST": first, "SECOND": second, "AFTER": after}
    program, facts = launch(k.in_two_steps, (2,), arguments)
    clean = (first, second, after) == (1, 2, 1)
    assert (strengthen(program, facts, decided=True, scale=5.0).status == "proved") == clean
    assert not (clean and "races" in list(exactly(program, facts, range(1, 4))))


@pytest.mark.parametrize(("second", "some"), [*product((1, 2), (0, 1))])
def test_all_wait_for_all_two_times(second: int, some: int) -> None:
    tensors = {"x": ints(8 * 128), "y": ints(8 * 128), "z": ints(8 * 128), "count": ints(1)}
    check(k.through_two, {**tensors, "SECOND": second, "SOME": some}, T1 if second == 2 else None, most=2 + some)


def test_halves_that_fit_one_grid_are_proved_for_that_grid() -> None:
    """A program more would run from one half into the other."""
    program, facts = launch(k.in_halves, (2,), {"x": ints(1024), "count": ints(1), "size": 2 * 128, "ROUNDS": 2})
    got = strengthen(program, facts, decided=False)
    assert (got.status, got.scope) == ("proved", ProofScope.THIS_PARAMS_THIS_GRID)
    assert list(exactly(program, facts, range(2, 4))) == ["proved", "races"]
    larger = strengthen(program, replace(facts, grid=(3, 1, 1)), decided=False)
    assert larger.status == "passed"


KINDS = torch.tensor([0, 1, 1, 0], dtype=torch.int32)
DISPATCHES = [{}, {"SPACE": 3}, {"CAP": 5}, {"STEP": 2}, {"SCOPE": "cta"}, {"TAKEN": 1}, {"TAKEN": -1}, {"first": -1}]


@pytest.mark.parametrize("changed", DISPATCHES, ids=str)
def test_places_counted_for_each_kind(changed: dict[str, Any]) -> None:
    """No place beyond the last of a kind is taken, and none before its first; then what is drawn tells all places apart."""
    chosen = {"CAP": 4, "SPACE": 4, "STEP": 1, "SCOPE": "gpu", "TAKEN": 0, "first": 0, **changed}
    count = ints(2, chosen.pop("first"))
    clean = changed in ({}, {"STEP": 2}, {"TAKEN": 1})
    program, facts = launch(k.dispatched, (4,), {"kinds": KINDS, "count": count, "out": ints(64)[8:], **chosen})
    got = strengthen(program, facts, decided=False, scale=5.0)
    said = schedule.decide(program, facts, budget=BUDGET).status
    if not clean and said != "races":  # another launch of these parameters does
        assert got.scope in (None, ProofScope.THIS_PARAMS_THIS_GRID)
    else:
        assert (got.status, said) == (("proved", "proved") if clean else ("passed", "races"))
    if got.status == "proved":
        assert READS_CONTENTS in got.qualifiers


HERE = ProofScope.THIS_PARAMS_THIS_GRID
TIGHT = [(50, 1, HERE), (49, 1, None), (100, 2, HERE), (99, 2, None)]
TILES = [({}, T1), ({"cap": 1 << 20}, None), ({"EACH": 3}, T1), ({"MASKED": 0}, None), ({"SPACE": 15}, None)]
TILES += [({"first": -1}, None), ({"cap": 1 << 20, "SPACE": 128}, ProofScope.THIS_PARAMS_THIS_GRID)]
TILES += [({"cap": 1 << 20, "SPACE": space, "EACH": each}, here) for space, each, here in TIGHT]


@pytest.mark.parametrize(("changed", "scope"), TILES, ids=str)
def test_places_counted_for_each_kind_by_the_lanes_of_tiles(changed: dict[str, Any], scope: ProofScope | None) -> None:
    chosen = {"n": 100, "cap": 16, "MASKED": 1, "SPACE": 16, "EACH": 1, "BLOCK": 32, "first": 0, **changed}
    tensors = {
        "kinds": torch.arange(128, dtype=torch.int32) % 2,
        "count": ints(2, chosen.pop("first")),
        "out": ints(1024),
    }
    program, facts = launch(k.dispatched_tiles, (4,), {**tensors, **chosen})
    got = strengthen(program, facts, decided=False, scale=5.0)
    assert (got.status, got.scope) == ("passed" if scope is None else "proved", scope)


ALLOCATIONS = [(4, 4, 0, 0, T1), (4, 8, 0, 0, None), (8, 4, 0, 0, T1), (4, 4, 4, 0, T1), (4, 4, 2, 0, None)]
ALLOCATIONS += [
    (4, 4, 0, (1 << 31) - 16, HERE),
    (4, 4, 0, (1 << 31) - 12, None),
    (4, 4, 0, -16, T1),
    (1, 1, 0, (1 << 31) - 4, T0),
]


@pytest.mark.parametrize(("step", "width", "twice", "first", "scope"), ALLOCATIONS)
def test_a_counter_that_hands_out_ranges(
    step: int, width: int, twice: int, first: int, scope: ProofScope | None
) -> None:
    arguments = {"head": ints(1, first), "out": ints(64), "STEP": step, "WIDTH": width, "TWICE": twice}
    program, facts = launch(k.allocated, (3,), arguments)
    got = strengthen(program, facts, decided=False, scale=5.0)
    assert (got.status, got.scope) == ("passed" if scope is None else "proved", scope)


LOWEST = -(1 << 31)


@pytest.mark.parametrize(("least", "by"), [(0, 1), (LOWEST + 2, 1), (LOWEST + 2, 3), (LOWEST + 2, 4), (LOWEST + 8, 5)])
def test_a_loop_that_counts_down_wraps_only_where_it_goes_on(least: int, by: int) -> None:
    arguments = {"state": ints(1), "out": ints(8), "LEAST": least, "BY": by}
    program, facts = launch(k.steps_back, (4,), arguments)
    got = strengthen(program, facts, decided=False, scale=5.0)
    wraps = least - by < LOWEST
    assert (got.refusal.kind if got.refusal else got.status) == ("integer-overflow" if wraps else "proved")


def test_looking_back_over_many_programs_that_nothing_else_decides() -> None:
    tensors = {name: ints(64) for name in ("x", "agg", "inc", "state", "out")}
    arguments = {**tensors, "SEM": "release", "LOOK": "acquire", "FENCE": 1, "EARLY": 0}
    program, facts = launch(k.looked_back, (64,), arguments)
    got = strengthen(program, facts, decided=False)
    assert (got.status, got.scope) == ("proved", T1)


def covered(kinds: list[int], begins: list[int], step: int, width: int) -> list[int]:
    """Every byte that some draw gives away, once for each."""
    next_ = list(begins)
    out = []
    for kind in kinds:
        out += range(next_[kind], next_[kind] + width)
        next_[kind] += step
    return out


@pytest.mark.parametrize("seed", range(40))
def test_places_that_start_apart_for_each_kind(seed: int) -> None:
    """Never proved where a byte is given away twice, and always where the kinds do not reach into each other."""
    rng = random.Random(seed)
    kinds = [rng.randint(-1, 2) for _ in range(rng.randint(2, 4))]
    begins = [rng.randint(-3, 12) for _ in range(3)]
    step, width, twice = rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2)), rng.choice((0, 1))
    drawn = [kind for kind in kinds for _ in range(1 + twice) if kind >= 0]
    places = covered(drawn, begins, step, width)
    clean = len(set(places)) == len(places)
    last = [begin + step * (drawn.count(kind) - 1) + width for kind, begin in enumerate(begins)]
    spans = sorted((begins[kind], last[kind]) for kind in set(drawn))
    apart = all(a[1] <= b[0] for a, b in pairwise(spans))
    tensors = {"kinds": torch.tensor(kinds), "count": torch.tensor(begins, dtype=torch.int32), "out": ints(64)[8:]}
    constants = {"STEP": step, "WIDTH": width, "TWICE": twice}
    program, facts = launch(k.given_places, (len(kinds),), {**tensors, **constants})
    got = strengthen(program, facts, decided=False, scale=5.0)
    assert got.status == ("proved" if clean and apart else "passed")
    said = schedule.decide(program, facts, budget=BUDGET)
    assert said.status != ("races" if clean else "proved")


@pytest.mark.parametrize(("n", "each", "less"), [(100, 1, 0), (100, 2, 0), (100, 1, 1), (101, 1, 0), (99, 1, 1)])
def test_places_for_as_many_as_there_are_of_each_kind(n: int, each: int, less: int) -> None:
    kinds = torch.arange(128, dtype=torch.int32) * 7 % 3
    many = each * torch.bincount(kinds[:100], minlength=3)
    begin = (many.cumsum(0) - many).to(torch.int32)
    begin[1:] -= less
    places = covered(kinds[:n].tolist() * each, begin.tolist(), 1, 1)
    tensors = {"kinds": kinds, "begin": begin, "count": ints(3), "out": ints(512)}
    program, facts = launch(k.given_places_by_lanes, (4,), {**tensors, "n": n, "EACH": each, "BLOCK": 32})
    got = strengthen(program, facts, decided=False, scale=5.0)
    clean = len(set(places)) == len(places)
    assert (got.status, got.scope) == (("proved", HERE) if clean else ("passed", None))


def test_places_for_kinds_that_are_not_known() -> None:
    tensors = {"x": torch.zeros(32), "count": torch.tensor([0, 16], dtype=torch.int32), "out": ints(64)}
    program, facts = launch(k.given_places_by_floats, (1,), {**tensors, "BLOCK": 32})
    assert strengthen(program, facts, decided=False, scale=5.0).status == "passed"
