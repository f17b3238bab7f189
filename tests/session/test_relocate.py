"""Equal launches are one question wherever an allocator put their tensors; launches that differ in more never are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import triton
import triton.language as tl

import racefree
from racefree.analysis import Analyst
from racefree.config import Settings
from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Scalar, Storage, Tensor
from racefree.graph.relocate import ALIGNMENT_BYTES, relocated, tells_addresses
from racefree.triton.capture import capture_one


def tensor(storage: Storage, offset: int = 0) -> Tensor:
    return Tensor(storage.address + offset, 4, "int32", (16,), (1,), storage)


def facts(**arguments: Argument) -> LaunchFacts:
    return LaunchFacts("kernel", (4, 1, 1), arguments)


def test_where_storages_lie_does_not_count() -> None:
    contents = np.arange(64, dtype=np.uint8)
    near = facts(x=tensor(Storage(0x1000, 64, contents)), out=tensor(Storage(0x8000, 64)), n=Scalar(3))
    swapped = facts(x=tensor(Storage(0x90000, 64, contents)), out=tensor(Storage(0x2040, 64)), n=Scalar(3))
    assert relocated(near, "") == relocated(swapped, "")


def test_alignment_counts() -> None:
    at = [relocated(facts(x=tensor(Storage(0x1000 + skew, 64))), "").arguments["x"] for skew in (0, 4, ALIGNMENT_BYTES)]
    assert at[0] == at[2]
    assert at[0] != at[1]
    assert [t.address % ALIGNMENT_BYTES for t in at if isinstance(t, Tensor)] == [0, 4, 0]


@pytest.mark.parametrize("gap", [-64, -16, 0, 16, 63, 64, 65])
def test_storages_that_overlap_keep_their_distance(gap: int) -> None:
    moved = relocated(facts(a=tensor(Storage(0x1000, 64)), b=tensor(Storage(0x1000 + gap, 64))), "").arguments
    a, b = moved["a"], moved["b"]
    assert isinstance(a, Tensor)
    assert isinstance(b, Tensor)
    if abs(gap) < 64:
        assert b.storage.address - a.storage.address == gap
    else:
        assert abs(b.storage.address - a.storage.address) > 1 << 39


def test_a_range_that_bridges_two_others_keeps_all_three_together() -> None:
    storages = {"a": Storage(100, 10), "b": Storage(120, 10), "bridge": Storage(105, 20)}
    moved = relocated(facts(**{name: tensor(s) for name, s in storages.items()}), "").arguments
    shifts = {t.storage.address - storages[name].address for name, t in moved.items() if isinstance(t, Tensor)}
    assert len(shifts) == 1


def test_views_and_descriptors_move_with_their_storage() -> None:
    storage = Storage(0x1000, 256)
    descriptor = Descriptor(tensor(storage, 64), (4, 4), (4, 1), (2, 2))
    moved = relocated(facts(a=tensor(storage), d=descriptor), "").arguments
    a, d = moved["a"], moved["d"]
    assert isinstance(a, Tensor)
    assert isinstance(d, Descriptor)
    assert d.base.address - a.address == 64
    assert d.base.storage is a.storage
    assert replace(d, base=descriptor.base) == descriptor


def test_storages_without_bytes_stay() -> None:
    empty = facts(a=tensor(Storage(0, 0)), b=tensor(Storage(0x1000, 0)), c=tensor(Storage(0x1000, 64)))
    moved = relocated(empty, "").arguments
    assert (moved["a"], moved["b"]) == (empty.arguments["a"], empty.arguments["b"])
    assert moved["c"] != empty.arguments["c"]


def test_huge_storages_do_not_meet() -> None:
    moved = relocated(facts(a=tensor(Storage(1 << 56, 5 << 40)), b=tensor(Storage(1 << 57, 64))), "").arguments
    a, b = (t.storage for t in moved.values() if isinstance(t, Tensor))
    assert b.address - (a.address + a.nbytes) >= 1 << 40


@triton.jit
def by_address(x, out, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    far = x.to(tl.int64, bitcast=True) // 4096
    tl.store(out + far % 8 + lanes, 1.0)


@triton.jit
def through_table(table, BLOCK: tl.constexpr):
    out = tl.load(table + tl.program_id(0)).to(tl.pointer_type(tl.float32))
    tl.store(out + tl.arange(0, BLOCK), 1.0)


@triton.jit
def through_pointers(table, BLOCK: tl.constexpr):
    pointers = table.to(tl.pointer_type(tl.pointer_type(tl.float32)))
    tl.store(tl.load(pointers + tl.program_id(0)) + tl.arange(0, BLOCK), 1.0)


@triton.jit
def copy(x, out, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + lanes))


def test_kernels_that_use_addresses_keep_them() -> None:
    x, table = torch.zeros(64), torch.zeros(8, dtype=torch.int64)
    for kernel, arguments in ((by_address, (x, x)), (through_table, (table,)), (through_pointers, (table,))):
        (config,) = capture_one(kernel, arguments, {"BLOCK": 16}, (4,)).configs
        assert config.module is not None
        assert config.facts is not None
        assert tells_addresses(config.module.text), kernel
        assert relocated(config.facts, config.module.text) is config.facts
    (config,) = capture_one(copy, (x, x), {"BLOCK": 16}, (4,)).configs
    assert config.module is not None
    assert not tells_addresses(config.module.text)


def test_equal_launches_share_one_verdict() -> None:
    analyst = Analyst(Settings())
    kept = [torch.zeros(64) for _ in range(6)]
    verdicts = [
        analyst.decide(capture_one(copy, (kept[k], kept[k + 1]), {"BLOCK": 16}, (4,))).launch.verdict for k in range(5)
    ]
    assert all(verdict is verdicts[0] for verdict in verdicts)


def test_overlap_of_arguments_is_no_equal_launch() -> None:
    whole = torch.zeros(128)
    statuses = [
        racefree.analyze(copy, x, out, grid=(4,), BLOCK=16).verdict.status.value
        for x, out in (
            (torch.zeros(64), torch.zeros(64)),
            (whole[:64], whole[8:72]),
            (whole[:64], whole[64:]),
            (whole[8:72], whole[:64]),
        )
    ]
    assert statuses == ["ok", "races", "ok", "races"]
