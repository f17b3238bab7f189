"""Every behaviour of the analysis of a launch, with the value it must give."""

from __future__ import annotations

from typing import Any

import behaviour_kernels as k
import pytest
import torch
from deciding import ANY, SAME_PARAMETERS, THIS, Case, decided, ints, lines_of, marked_races, permutation, races, said

from racefree.verdict import ASSUMES_TERMINATION, ONE_THREAD_PER_LANE, READS_CONTENTS, assumes_no_overflow

TABLE = {"index": permutation(32), "o": ints(32)}
NO_SIGN, SIGNED = torch.tensor([3, 200], dtype=torch.uint8), torch.tensor([3, -56], dtype=torch.int8)
BOTH_3 = torch.tensor([3, 65539], dtype=torch.int32)
READ = {"x": ints(999), "y": ints(512)}
TILES = {"x": ints(512), "o": ints(999)}
I32, I64 = assumes_no_overflow(32), assumes_no_overflow(64)
WRAPS = frozenset({I32})
CONTENTS = frozenset({READS_CONTENTS})
WAITS = frozenset({ASSUMES_TERMINATION})
SHARED = ints(99)


def three(count: int) -> dict[str, Any]:
    return {"data": ints(128), "flag": ints(1), "o": ints(count)}


RACES_AND_SCOPES = {
    "two programs write": Case(k.write_write, (4,), {"o": ints(99), "STEP": 8}, "races", races("WAW R1 R2")),
    "one writes, another reads": Case(k.write_read, (8,), {"x": ints(8), "o": ints(8)}, "races", races("RAW R1 R2")),
    "one reads, another writes": Case(k.read_write, (8,), {"x": ints(8), "o": ints(8)}, "races", races("WAR R1 R2")),
    "an atomic and a load": Case(k.atomic_and_load, (4,), {"count": ints(1), "o": ints(8)}, "races", races("WAR R1 R2")),
    "any parameters": Case(k.two_buffers, (4,), {"x": ints(99), "y": ints(99), "STEP": 16}, ANY, with_=WRAPS),
    "any parameters, no arithmetic": Case(
        k.lanes_on_one_element, (2,), {"x": ints(9), "MANY": 1, "KEPT": 1}, ANY, without=WRAPS
    ),
    "views of one buffer": Case(
        k.two_buffers, (4,), {"x": SHARED[8:], "y": SHARED[:80], "STEP": 16}, "races", races("WAR R1 R1")
    ),
    "these parameters": Case(k.row, (4,), {"o": ints(99), "pitch": 16}, SAME_PARAMETERS, with_=WRAPS),
    "a pitch below nought": Case(k.row, (4,), {"o": ints(99)[80:], "pitch": -16}, SAME_PARAMETERS),
    "this grid": Case(k.parity, (2,), {"o": ints(2)}, THIS),
    "evidence beside what is not known": Case(
        k.parity_and_unknown, (2,), {"o": ints(2), "x": ints(1), "keep": torch.zeros(9)}, "potential-race"
    ),
    "too many programs to look at them all": Case(
        k.write_write, (1 << 25,), {"o": torch.empty(1 << 29, dtype=torch.int32, device="meta"), "STEP": 8},
        "races", races("WAW R1 R2"),
    ),
    "one program more": Case(k.parity, (3,), {"o": ints(2)}, "races", races("WAW R1 R2")),
}  # fmt: skip

WIDTHS = {
    "would wrap at five programs": Case(k.wraps_back, (2,), {"o": ints(9)}, THIS),
    "wraps": Case(k.wraps_back, (5,), {"o": ints(9)}, "races", races("WAW R1 R2")),
    "a wrapping product that is not chosen": Case(k.guarded_product, (2,), {"o": ints(3)}, THIS),
    "its other arm meets": Case(k.guarded_product, (3,), {"o": ints(3)}, "races", races("WAW R1 R2")),
    "bounds that wrap where they are not reached": Case(
        k.wraps_in_branch, (3,), {"o": ints(64), "n": 2, "big": 1 << 30}, SAME_PARAMETERS
    ),
    "two widths on two ways": Case(
        k.two_widths, (3,), {"o": ints(99), "near": 1 << 20, "far": 1 << 50}, SAME_PARAMETERS, with_=frozenset({I32, I64})
    ),
}  # fmt: skip

ROUNDS = {
    "two loops": Case(k.two_loops, (3,), {"o": ints(64), "n": 4}, SAME_PARAMETERS),
    "two loops that overlap": Case(
        k.two_loops, (3,), {"o": ints(64), "n": 3}, SAME_PARAMETERS, races("WAW R1 R2"), strict="races"
    ),
    "one loop in another": Case(k.nested, (3,), {"o": ints(64), "INNER": 4}, ANY),
    "one loop in another, overlapping": Case(
        k.nested, (3,), {"o": ints(64), "INNER": 3}, ANY, races("WAW R1 R1"), strict="races"
    ),
    "in place after a loop that reads": Case(k.read_loop_then_in_place, (3,), {**READ, "INSIDE": 0}, ANY),
    "in place in another loop": Case(k.read_loop_then_in_place, (3,), {**READ, "INSIDE": 1}, ANY),
    "a return before the barrier": Case(
        k.returns_early, (3,), {**TILES, "n": 2, "FENCE": 1}, ANY, races("RAW R1 R2"), strict=ANY
    ),
    "a return and no barrier": Case(
        k.returns_early, (3,), {**TILES, "n": 2, "FENCE": 0}, "races", races("RAW R1 R2")
    ),
}  # fmt: skip

TABLES = {
    "a mask that is loaded": Case(k.masked_by_flag, (2,), {"x": ints(32), "keep": ints(32)}, ANY, without=CONTENTS),
    "a mask nothing is known of": Case(k.masked_by_flag, (2,), {"x": ints(32), "keep": torch.zeros(32)}, ANY, without=CONTENTS),
    "all but one masked off": Case(
        k.meeting_unless_masked, (3,), {"x": ints(16), "keep": torch.tensor([0, 1, 0], dtype=torch.int32)}, SAME_PARAMETERS,
        with_=CONTENTS,
    ),
    "all but two masked off": Case(
        k.meeting_unless_masked, (3,), {"x": ints(16), "keep": torch.tensor([0, 1, 1], dtype=torch.int32)}, "races",
        races("WAW R1 R2"),
    ),
    "who is masked off is not known": Case(
        k.meeting_unless_masked, (3,), {"x": ints(16), "keep": torch.zeros(3)}, "potential-race"
    ),
    "a table of places": Case(k.scatter, (2,), TABLE, SAME_PARAMETERS, with_=CONTENTS),
    "a place twice": Case(k.scatter, (2,), {**TABLE, "index": permutation(32) // 2}, "races", races("WAW R1 R2")),
    "a table of numbers that are not known": Case(
        k.scatter_rounded, (2,), {**TABLE, "index": torch.zeros(32)}, "indirect-address"
    ),
    "a table that is part of a larger one": Case(
        k.scatter, (2,), {**TABLE, "index": torch.cat([permutation(32)] * 2)[32:]}, SAME_PARAMETERS, with_=CONTENTS
    ),
    "a table of many elements": Case(k.scatter, (2,), {**TABLE, "index": permutation(32).repeat(2000)}, THIS, with_=CONTENTS),
    "a table the kernel writes in the end": Case(k.scatter_and_note, (2,), TABLE, THIS, with_=CONTENTS),
    "what masked lanes read": Case(k.masked_other, (2,), TABLE, "races", races("WAW R1 R2")),
    "bytes without a sign": Case(
        k.unsigned_index, (2,), {"index": NO_SIGN, "o": ints(256)}, SAME_PARAMETERS, with_=CONTENTS
    ),
    "bytes with a sign": Case(
        k.unsigned_index, (2,), {"index": SIGNED, "o": ints(400)[100:]}, SAME_PARAMETERS,
        with_=CONTENTS,
    ),
    "half of each number": Case(k.halves, (2,), {"index": BOTH_3, "o": ints(9)}, "races", races("WAW R1 R2")),
}  # fmt: skip

BARRIERS = {
    "no barrier": Case(k.reversed_tile, (2,), {**TILES, "FENCE": 0, "ONLY": 0}, "races", races("RAW R1 R2")),
    "a barrier": Case(k.reversed_tile, (2,), {**TILES, "FENCE": 1, "ONLY": 0}, ANY, strict=ANY),
    "a barrier some pass": Case(
        k.reversed_tile, (2,), {**TILES, "FENCE": 1, "ONLY": 1}, "races", races("RAW R1 R2")
    ),
    "a barrier before the load": Case(
        k.loop_of_barriers, (2,), {**TILES, "FRONT": 1, "BACK": 0}, "races", races("WAR R1 R2")
    ),
    "a barrier after the load": Case(
        k.loop_of_barriers, (2,), {**TILES, "FRONT": 0, "BACK": 1}, "races", races("RAW R1 R2")
    ),
    "barriers on both sides": Case(k.loop_of_barriers, (2,), {**TILES, "FRONT": 1, "BACK": 1}, ANY, strict=ANY),
}  # fmt: skip

DEPENDENCE = {
    "in place": Case(k.in_place, (2,), {"x": ints(200), "SHIFT": 0, "num_warps": 1}, ANY, strict=ANY),
    "into the next element": Case(k.in_place, (2,), {"x": ints(200), "SHIFT": 1}, "races", races("WAR R1 R2")),
    "through an atomic": Case(
        k.through_atomic, (2,), {"x": ints(64), "cell": ints(64), "MASKED": 0, "num_warps": 1}, ANY, strict=ANY
    ),
    "through an atomic that is off": Case(
        k.through_atomic, (2,), {"x": ints(64), "cell": ints(64), "MASKED": 1}, "races", races("WAR R1 R2")
    ),
    "all lanes on one element": Case(
        k.lanes_on_one_element, (2,), {"x": ints(9), "MANY": 16, "KEPT": 16}, "races", races("WAW R1 R2")
    ),
    "all lanes but one masked off": Case(k.lanes_on_one_element, (2,), {"x": ints(9), "MANY": 16, "KEPT": 1}, ANY),
    "a row of pointers for a square": Case(k.broadcast_row, (2,), {"x": ints(64), "FIRST": 16}, "races", races("WAW R1 R2")),
    "one row of the square kept": Case(k.broadcast_row, (2,), {"x": ints(64), "FIRST": 1}, ANY),
}  # fmt: skip

WAITING = {
    "waits": Case(
        k.handed_over, (3,), {**three(999), "WANTED": 1, "SEM": "acquire", "LOOK": True}, SAME_PARAMETERS,
        with_=WAITS | CONTENTS,
    ),
    "waits, relaxed": Case(
        k.handed_over, (3,), {**three(999), "WANTED": 1, "SEM": "relaxed", "LOOK": True}, "races", races("RAW R1 R2")
    ),
    "waits for what is there": Case(
        k.handed_over, (3,), {**three(999), "WANTED": 0, "SEM": "acquire", "LOOK": True}, "races", races("RAW R1 R2")
    ),
    "does not wait": Case(
        k.handed_over, (3,), {**three(999), "WANTED": 1, "SEM": "acquire", "LOOK": False}, "races", races("RAW R1 R2")
    ),
    "waits for a product": Case(k.handed_over_by_number, (2,), {**three(999), "big": 1 << 30}, THIS, with_=WAITS),
    "waits for a product that wraps": Case(
        k.handed_over_by_number, (5,), {**three(999), "big": 1 << 30}, "races", races("RAW R1 R2")
    ),
    "a poll alone": Case(k.reset_meanwhile, (3,), {"flag": ints(1), "o": ints(1), "RESET": "none"}, ANY, with_=WAITS),
    "a poll and an atomic of the device": Case(
        k.reset_meanwhile, (3,), {"flag": ints(1), "o": ints(1), "RESET": "device"}, ANY, with_=WAITS
    ),
    "a poll and an atomic of a block": Case(
        k.reset_meanwhile, (3,), {"flag": ints(1), "o": ints(1), "RESET": "block"}, "races", races("WAW R1 R2")
    ),
    "a poll and a plain read": Case(
        k.reset_meanwhile, (3,), {"flag": ints(1), "o": ints(1), "RESET": "read"}, "races", races("RAW R1 R3")
    ),
    "a loop that counts": Case(k.counting, (3,), {"x": ints(64), "n": 5}, SAME_PARAMETERS, without=WAITS),
    "a lock": Case(k.spin_lock, (3,), {"x": ints(128), "lock": ints(1), "GIVE": "release"}, ANY, with_=WAITS),
    "a lock given back too soon": Case(
        k.spin_lock, (3,), {"x": ints(128), "lock": ints(1), "GIVE": "relaxed"}, "races", races("WAR R1 R1", "WAW R1 R1")
    ),
    "work beside copying": Case(
        k.computes_beside_communication, (4,),
        {"data": ints(256), "sums": ints(256), "ready": ints(2), "o": ints(256), "ACQUIRE": "acquire"}, SAME_PARAMETERS,
        with_=WAITS,
    ),
    "work beside copying, relaxed": Case(
        k.computes_beside_communication, (4,),
        {"data": ints(256), "sums": ints(256), "ready": ints(2), "o": ints(256), "ACQUIRE": "relaxed"}, "races",
        races("RAW R1 R2"),
    ),
}  # fmt: skip

SWAPS = {
    f"handed over by swaps, {out} and {into}": Case(
        k.swapped_over, (2,), {**three(999), "OUT": out, "IN": into},
        "races" if "relaxed" in (out, into) else SAME_PARAMETERS,
        races("RAW R1 R2") if "relaxed" in (out, into) else frozenset(),
    )
    for out in ("release", "acq_rel", "relaxed") for into in ("acquire", "acq_rel", "relaxed")
} | {
    "swaps in a comparison": Case(k.swap_of, (3,), {"flag": ints(1), "x": ints(1), "KIND": "comparison", "n": 7}, THIS),
    "swaps in a sum": Case(k.swap_of, (3,), {"flag": ints(1), "x": ints(1), "KIND": "arithmetic", "n": 7}, THIS),
    "swaps in nought, narrowed": Case(
        k.swap_of, (3,), {"flag": ints(1), "x": ints(1), "KIND": "narrowed", "n": 7}, "races", races("WAW R1 R2")
    ),
    "swaps in an argument": Case(k.swap_of, (3,), {"flag": ints(1), "x": ints(1), "KIND": "", "n": 7}, SAME_PARAMETERS),
    "swaps in an argument that is nought": Case(
        k.swap_of, (3,), {"flag": ints(1), "x": ints(1), "KIND": "", "n": 0}, "races", races("WAW R1 R2")
    ),
    "swaps in a loop": Case(k.swaps_in_a_loop, (3,), {"flag": ints(4), "x": ints(4), "TRIES": 3}, ANY),
}  # fmt: skip

CASES = RACES_AND_SCOPES | WIDTHS | ROUNDS | TABLES | BARRIERS | DEPENDENCE | WAITING | SWAPS


@pytest.mark.parametrize("name", CASES)
def test_behaviour(name: str) -> None:
    case = CASES[name]
    verdict = decided(case)
    assert said(verdict) == case.said, (verdict.refusal, verdict.races)
    assert case.with_ <= set(verdict.qualifiers)
    assert not case.without & set(verdict.qualifiers)
    if case.said == "races":
        assert marked_races(case.kernel, verdict) == lines_of(case.kernel, case.races)
        assert all(race.witness == "confirmed" for race in verdict.races)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.strict])
def test_where_each_lane_is_a_thread(name: str) -> None:
    """Only data dependence and barriers order the executions of one program then, not that one thread runs both."""
    case = CASES[name]
    verdict = decided(case, lanes="strict")
    assert said(verdict) == case.strict, verdict.refusal
    assert ONE_THREAD_PER_LANE not in verdict.qualifiers
    if case.strict == "races":
        assert lines_of(case.kernel, case.races) <= marked_races(case.kernel, verdict)


def test_races_of_other_grids_are_evidence_only() -> None:
    """Also where this launch is not decided."""
    proved = decided(CASES["this grid"])
    assert {(r.race_type, r.programs) for r in proved.grid_fragile} == {("WAW", ((0, 0, 0), (2, 0, 0)))}
    assert not proved.races
    undecided = decided(CASES["evidence beside what is not known"])
    assert {(r.race_type, r.programs) for r in undecided.grid_fragile} == {("WAW", ((0, 0, 0), (2, 0, 0)))}
    assert not undecided.races


def test_what_was_waited_for_may_still_be_polled() -> None:
    """The poll that a race names is one that found the flag not set yet."""
    verdict = decided(CASES["a poll and an atomic of a block"])
    assert verdict.races[0].first.op != "store"
    assert ASSUMES_TERMINATION in verdict.qualifiers
