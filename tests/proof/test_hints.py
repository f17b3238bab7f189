"""Each hint comes from a kernel of its kind, and says what is so; kernels that resemble it get another."""

from __future__ import annotations

from typing import Any

import hint_kernels
import pytest
import torch

import racefree
from racefree.verdict import Cause, CompiledRaceRecord


def floats(size: int = 1024) -> torch.Tensor:
    return torch.zeros(size)


def integers(size: int = 1024) -> torch.Tensor:
    return torch.zeros(size, dtype=torch.int32)


def races(name: str, *arguments: Any, grid: tuple[int, ...] = (4,), **rest: Any) -> tuple[CompiledRaceRecord, ...]:
    launch = racefree.analyze(getattr(hint_kernels, name), *arguments, grid=grid, **rest)
    assert launch.races, launch.verdict
    return launch.races


def between(records: tuple[CompiledRaceRecord, ...]) -> CompiledRaceRecord:
    return next(record for record in records if record.programs[0] != record.programs[1])


FLAGS = {"GIVE": "release", "TAKE": "acquire", "FENCE": True, "BLOCK": 256}


@pytest.mark.parametrize(
    ("name", "arguments", "rest", "cause", "words"),
    [
        (
            "waits_plainly",
            (integers(), integers()),
            {"BLOCK": 128},
            Cause.WANTS_ATOMIC,
            "a loop waits for what line ",
        ),
        (
            "walks_a_list",
            (torch.arange(1, 5, dtype=torch.int32), integers()),
            {},
            Cause.SHARED,
            "one program loads what another stores: store to another tensor, or split the kernel into two launches",
        ),
        (
            "no_mask",
            (floats(), floats(), 100),
            {"BLOCK": 128},
            Cause.MISSING_MASK,
            "programs start 100 elements apart, but a block spans 128 and the store has no mask: mask the lanes from 100 on",
        ),
        (
            "stride_below_block",
            (floats(), 1000),
            {"BLOCK": 128},
            Cause.STRIDE_BELOW_BLOCK,
            "programs start 64 elements apart, but a block spans 128: multiply the program id by the block size",
        ),
        (
            "mask_too_wide",
            (floats(), floats(), 100, 1000),
            {"BLOCK": 128},
            Cause.STRIDE_BELOW_BLOCK,
            "programs start 100 elements apart, but a block spans 128: multiply the program id by the block size",
        ),
        (
            "columns_overlap",
            (floats(4096), 64),
            {"grid": (1, 4), "BLOCK": 16},
            Cause.STRIDE_BELOW_BLOCK,
            "programs start 8 elements apart, but a block spans 16 along lane[1]",
        ),
        (
            "no_program_id",
            (floats(),),
            {"grid": (4, 2), "BLOCK": 128},
            Cause.MISSING_PROGRAM_ID,
            "the address does not use tl.program_id(1), in which the two programs differ",
        ),
        ("load_add_store", (floats(), floats(1)), {"BLOCK": 128}, Cause.WANTS_ATOMIC, "use tl.atomic_add"),
        ("load_max_store", (floats(), floats(1)), {"BLOCK": 128}, Cause.WANTS_ATOMIC, "use an atomic"),
        (
            "publish",
            (integers(), integers(1), integers()),
            FLAGS | {"grid": (2,), "FENCE": False},
            Cause.RELEASE_WITHOUT_BARRIER,
            "put tl.debug_barrier() between the store of line",
        ),
        (
            "publish",
            (integers(), integers(1), integers()),
            FLAGS | {"grid": (2,), "TAKE": "relaxed"},
            Cause.MISSING_ACQUIRE,
            'has sem="relaxed": give it sem="acquire"',
        ),
        (
            "publish",
            (integers(), integers(1), integers()),
            FLAGS | {"grid": (2,), "GIVE": "acquire"},
            Cause.MISSING_RELEASE,
            'has sem="acquire": give it sem="acq_rel"',
        ),
        (
            "scatter",
            (torch.arange(512, dtype=torch.int32) // 2 * 2 % 510, floats()),
            {"BLOCK": 128},
            Cause.DUPLICATE_INDICES,
            "index[",
        ),
        ("reversed_in_place", (floats(),), {"grid": (1,), "BLOCK": 256}, Cause.MISSING_BARRIER, "tl.debug_barrier()"),
        ("lanes_meet", (floats(),), {"grid": (1,), "BLOCK": 256}, Cause.LANES_SHARE, "mask all but one of them"),
        ("narrow", (integers(1),), {}, Cause.NARROW_SCOPE, 'give it scope="gpu"'),
        ("cleared_and_counted", (integers(1),), {}, Cause.ATOMIC_AND_PLAIN, "initialise the memory before the launch"),
        (
            "walks_on",
            (floats(),),
            {"BLOCK": 32},
            Cause.LOOP_TOO_LONG,
            "programs start 64 elements apart, and the loop of one reaches the start of another",
        ),
        ("two_a_row", (floats(),), {"BLOCK": 32}, Cause.SAME_ADDRESS, "the address comes out the same"),
    ],
    ids=lambda value: value if isinstance(value, str) and value.isidentifier() else "",
)
def test_hint(name: str, arguments: tuple[Any, ...], rest: dict[str, Any], cause: Cause, words: str) -> None:
    found = races(name, *arguments, **rest)
    record = found[0] if rest.get("grid") == (1,) else between(found)
    assert record.cause is cause
    assert words in record.hint


def test_aliased_arguments() -> None:
    both = floats()
    record = between(races("shift", both[: 4 * 64], both, BLOCK=32))
    assert record.cause is Cause.ALIASED
    assert record.hint == "a and b share storage: pass tensors that do not overlap"


def test_a_tensor_that_is_left_for_its_neighbour_is_told_apart_from_aliasing() -> None:
    """Parts of one allocation that do not overlap are no fault of whoever passes them."""
    q, k = torch.zeros(4, 96).chunk(2, dim=1)
    record = next(r for r in races("both_halves", q, k, 96, BLOCK=64) if r.programs[0] == r.programs[1])
    assert record.cause is Cause.MISSING_MASK
    assert record.hint.startswith("the store of line ")
    assert record.hint.endswith(" leaves q and gets into k, which lies in the same storage: mask it there")


def test_a_loop_that_steps_by_less_than_the_number_of_programs() -> None:
    record = between(races("round_robin", floats(), 16, grid=(8,), STEP=4, BLOCK=32))
    assert record.cause is Cause.LOOP_TOO_LONG
    said = "a round of the loop moves on by 4 programs, and there are 8: step by tl.num_programs(0)"
    assert record.hint == f"{said}, or end the loop earlier"


def test_an_atomic_and_a_plain_access_of_one_program_want_a_barrier() -> None:
    (record,) = races("counted_if_new", integers(4))
    assert record.cause is Cause.ATOMIC_AND_PLAIN
    assert record.hint.startswith("make the load an atomic read, or put tl.debug_barrier() between the two accesses")
    (record,) = races("cleared_and_scattered", integers(256), integers(256), grid=(1,), BLOCK=256)
    assert record.hint == "put tl.debug_barrier() between the two accesses, or make the plain store an atomic too"


def test_a_load_of_the_neighbour_is_told_apart_from_aliasing() -> None:
    """The same memory under one name is no matter of the arguments."""
    both = floats()
    record = between(races("shift", both, both, BLOCK=32))
    assert record.cause is Cause.ALIASED
    assert {record.first.tensor, record.second.tensor} == {"a", "b"}


def test_the_two_entries_of_a_table_are_those_that_are_equal() -> None:
    table = torch.arange(512, dtype=torch.int32)
    table[300] = 17
    record = between(races("scatter", table, floats(), BLOCK=128))
    assert record.hint.startswith("index[17] and index[300] are both 17: ")
    arithmetic = record.first.arithmetic, record.second.arithmetic
    assert sorted(arithmetic) == [
        "index[pid*128 + lane] = index[17] = 17",
        "index[pid*128 + lane] = index[300] = 17",
    ]


@pytest.mark.parametrize("name", ["mask_too_wide", "stride_below_block", "columns_overlap"])
def test_no_mask_is_missed_where_there_is_one(name: str) -> None:
    arguments = {
        "mask_too_wide": (floats(), floats(), 100, 1000),
        "stride_below_block": (floats(), 1000),
        "columns_overlap": (floats(4096), 64),
    }[name]
    grid = (1, 4) if name == "columns_overlap" else (4,)
    for record in races(name, *arguments, grid=grid, BLOCK=128 if name != "columns_overlap" else 16):
        assert "no mask" not in record.hint
        assert "mask the lanes" not in record.hint


def test_a_barrier_is_not_missed_where_it_stands() -> None:
    """With the barrier in place, what is missing is the acquire, and only that."""
    rest = FLAGS | {"TAKE": "relaxed"}
    for record in races("publish", integers(), integers(1), integers(), grid=(2,), **rest):
        assert "tl.debug_barrier()" not in record.hint


def test_each_load_of_an_update_gets_the_hint_that_is_true_of_it() -> None:
    """Only a load of the stored element itself shares the stride of the store; none of them wants an atomic."""
    told = {}
    for record in races("update_below_block", floats(), 1000, BLOCK=256):
        if record.programs[0] != record.programs[1]:
            loads = [side.column for side in (record.first, record.second) if not side.write]
            told[tuple(loads)] = record.cause
    first, second = sorted(column for columns in told for column in columns)
    assert told == {(): Cause.STRIDE_BELOW_BLOCK, (first,): Cause.STRIDE_BELOW_BLOCK, (second,): Cause.SHARED}


def test_a_load_through_the_pointers_of_a_store_is_told_the_same_cause() -> None:
    for name, cause, words in (
        ("heads_by_two", Cause.SAME_ADDRESS, "the address comes out the same for both programs"),
        ("row_in_place", Cause.MISSING_PROGRAM_ID, "the address does not use tl.program_id(1)"),
    ):
        records = races(name, floats(), grid=(4, 1) if cause is Cause.SAME_ADDRESS else (4, 2), BLOCK=256)
        assert {(record.cause, record.hint.startswith(words)) for record in records} == {(cause, True)}
        assert {record.race_type for record in records} == {"WAW", "WAR"}


def test_lanes_that_update_one_element_want_an_atomic_unless_one_of_them_stores() -> None:
    index = integers(256)
    index[:] = torch.arange(256)
    index[200] = 3
    lost, late = (
        next(
            r for r in races("counted_by_hand", index, integers(), 250, n, grid=(1,), BLOCK=256) if r.race_type != "WAW"
        )
        for n in (250, 200)
    )
    assert lost.cause is Cause.LANES_SHARE
    assert lost.hint.endswith("and lanes lose each other's updates: use tl.atomic_add")
    assert late.cause is Cause.MISSING_BARRIER
