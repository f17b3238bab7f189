"""Pointers that a launch reads from a table of integers."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

import racefree
from racefree.report.launches import place_of
from racefree.verdict import ProofScope, Status


@triton.jit
def fill_by_table(table, counts, BLOCK: tl.constexpr):
    at = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    lanes = tl.arange(0, BLOCK)
    tl.store(at + lanes, 1.0, mask=lanes < tl.load(counts + tl.program_id(0)))


def _decide(addresses: list[int], counts: list[int]) -> racefree.Launch:
    table = torch.tensor(addresses, dtype=torch.int64)
    sizes = torch.tensor(counts, dtype=torch.int32)
    return racefree.analyze(fill_by_table, table, sizes, 64, grid=(len(addresses),))


def test_tensors_apart_are_clean() -> None:
    outputs = [torch.zeros(64) for _ in range(3)]
    launch = _decide([o.data_ptr() for o in outputs], [64, 10, 64])
    assert launch.verdict.status is Status.OK
    assert "reads tensor contents" in launch.verdict.qualifiers


def test_one_tensor_twice_races() -> None:
    out = torch.zeros(128)
    launch = _decide([out.data_ptr(), out.data_ptr() + 40 * 4], [64, 64])
    assert launch.verdict.status is Status.RACES
    (race,) = launch.races
    assert race.first.address_bytes == race.second.address_bytes == out.data_ptr() + 40 * 4
    assert (race.first.tensor, race.first.element) == ("", None)
    assert place_of(race.first) == f"memory at {out.data_ptr() + 40 * 4:#x}"


def test_one_tensor_twice_is_clean_where_the_counts_keep_apart() -> None:
    out = torch.zeros(128)
    assert _decide([out.data_ptr(), out.data_ptr() + 40 * 4], [40, 64]).verdict.status is Status.OK


def test_writing_over_the_table_is_refused() -> None:
    table = torch.zeros(64, dtype=torch.int64)
    table[0] = table.data_ptr()
    counts = torch.tensor([4], dtype=torch.int32)
    launch = racefree.analyze(fill_by_table, table, counts, 64, grid=(1,))
    assert launch.verdict.status is Status.UNSUPPORTED


def test_running_into_a_tensor_of_the_launch_is_refused() -> None:
    table = torch.zeros(64, dtype=torch.int64)
    table[0] = table.data_ptr() - 16
    counts = torch.tensor([64], dtype=torch.int32)
    launch = racefree.analyze(fill_by_table, table, counts, 64, grid=(1,))
    assert launch.verdict.status is Status.UNSUPPORTED


@triton.jit
def compare_with_table(table, out):
    p = tl.program_id(0)
    if out.to(tl.int64) == tl.load(table):
        tl.store(out, p)
    else:
        tl.store(out + p, p)


@triton.jit
def compare_with_each_other(a, b, out, distance):
    p = tl.program_id(0)
    if b.to(tl.int64) - a.to(tl.int64) == distance:
        tl.store(out, p)
    else:
        tl.store(out + p, p)


@triton.jit
def at_distances(table, out):
    p = tl.program_id(0)
    distance = (tl.load(table + p) - out.to(tl.int64)) // 4
    tl.store(out + distance, p)


def _ints(count: int) -> torch.Tensor:
    return torch.zeros(count, dtype=torch.int32)


@pytest.mark.parametrize("grid", [1, 4])
@pytest.mark.parametrize("shift", [0, 4])
def test_an_address_as_an_integer_is_the_real_one(grid: int, shift: int) -> None:
    out, a, b = _ints(64), _ints(64), _ints(64)
    table = torch.tensor([out.data_ptr() + shift], dtype=torch.int64)
    by_table = racefree.analyze(compare_with_table, table, out, grid=(grid,))
    distance = b.data_ptr() - a.data_ptr() + shift
    by_distance = racefree.analyze(compare_with_each_other, a, b, out, distance, grid=(grid,))
    for launch in (by_table, by_distance):
        assert launch.verdict.status is (Status.RACES if grid > 1 and shift == 0 else Status.OK)
        if grid == 1 and shift == 0:
            assert launch.verdict.scope is ProofScope.THIS_PARAMS_THIS_GRID


@pytest.mark.parametrize(("places", "status"), [((0, 1, 2), Status.OK), ((0, 2, 2), Status.RACES)])
def test_distances_between_a_table_and_a_tensor(places: tuple[int, ...], status: Status) -> None:
    out = _ints(64)
    table = torch.tensor([out.data_ptr() + 4 * place for place in places], dtype=torch.int64)
    assert racefree.analyze(at_distances, table, out, grid=(3,)).verdict.status is status
