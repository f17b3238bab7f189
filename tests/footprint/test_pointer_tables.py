"""Pointers that a launch reads from a table of integers."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

import racefree
from racefree.verdict import Status


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
