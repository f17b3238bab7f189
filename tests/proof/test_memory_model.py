"""The table of what Triton adds, against the machine code that the installed Triton emits."""

from __future__ import annotations

import re
from typing import Any

import pytest
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from racefree.proof.memory_model import MemoryModel, memory_model

VECTOR: tl.constexpr = tl.constexpr(1024)


@triton.jit
def publish(data, flag):
    tl.store(data + tl.arange(0, VECTOR), 1)
    tl.atomic_xchg(flag, 1, sem="release")


@triton.jit
def take(data, flag, out):
    seen = tl.atomic_add(flag + tl.arange(0, VECTOR), 0, sem="acquire")
    tl.store(out + tl.arange(0, VECTOR), tl.load(data + tl.arange(0, VECTOR), mask=seen > 0))


@triton.jit
def rows_maximum(data, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    at = tl.arange(0, ROWS)[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    values = tl.load(data + at)
    tl.store(out + at, values - tl.max(values, 1)[:, None])


@triton.jit
def running_sum(data, out):
    at = tl.arange(0, VECTOR)
    tl.store(out + at, tl.cumsum(tl.load(data + at), 0))


@triton.jit
def count(data, cell, out, OPERATION: tl.constexpr, SEM: tl.constexpr, SCOPE: tl.constexpr, USE: tl.constexpr):
    at = tl.arange(0, VECTOR)
    if OPERATION == "look":
        seen = tl.atomic_add(cell, 0, sem=SEM, scope=SCOPE)
    elif OPERATION == "add":
        seen = tl.atomic_add(cell, 1, sem=SEM, scope=SCOPE)
    elif OPERATION == "max":
        seen = tl.atomic_max(cell, 1, sem=SEM, scope=SCOPE)
    elif OPERATION == "exchange":
        seen = tl.atomic_xchg(cell, 1, sem=SEM, scope=SCOPE)
    else:
        seen = tl.atomic_cas(cell, 0, 1, sem=SEM, scope=SCOPE)
    if USE == "branch":
        if seen == 5:
            tl.store(out + at, tl.load(data + at))
    elif USE == "address":
        tl.store(out + at, tl.load(data + at + seen))
    elif USE == "later":
        tl.store(out + at, tl.load(data + at))
        tl.store(out + VECTOR, seen)
    elif USE == "print":
        tl.device_print("seen", seen)
        tl.store(out + at, tl.load(data + at))
    elif USE == "assume":
        tl.assume(seen >= 0)
        tl.store(out + at, tl.load(data + at))
    else:
        if USE == "dead":
            tl.load(data + seen)
        tl.store(out + at, tl.load(data + at))


def _events(kernel: Any, pointers: str, warps: int = 4, **constants: int | str) -> list[str]:
    """Global accesses and block-wide barriers of the emitted PTX, in order, repeats folded."""
    names = [p.name for p in kernel.params]
    signature = {n: "constexpr" if n in constants else f"*{pointers}" for n in names}
    source = ASTSource(kernel, signature, {(names.index(n),): v for n, v in constants.items()})
    ptx = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": warps}).asm["ptx"]
    found = re.findall(r"\b(atom|ld\.global|st\.global|bar\.sync)", ptx)
    return [e for i, e in enumerate(found) if i == 0 or found[i - 1] != e]


@pytest.fixture(scope="module")
def row() -> MemoryModel:
    return memory_model(triton.__version__, "cuda:80")


def test_barrier_before_release(row: MemoryModel) -> None:
    events = _events(publish, "i32")
    before = events[events.index("st.global") + 1 : events.index("atom")]
    assert ("bar.sync" in before) == row.barrier_before_release


def test_barrier_after_acquire(row: MemoryModel) -> None:
    events = _events(take, "i32")
    after = events[events.index("atom") + 1 : events.index("ld.global")]
    assert ("bar.sync" in after) == row.barrier_after_acquire


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("use", ["branch", "address", "later", "print", "assume", "dead", "none"])
@pytest.mark.parametrize("sem", ["relaxed", "acquire", "release", "acq_rel"])
@pytest.mark.parametrize("operation", ["look", "add", "max", "exchange", "swap"])
def test_barrier_after_a_result_that_is_used(row: MemoryModel, operation: str, sem: str, use: str, warps: int) -> None:
    """What changes nothing may be done by a load."""
    scope = "cta" if sem == "release" else "gpu"
    events = _events(count, "i32", warps, OPERATION=operation, SEM=sem, SCOPE=scope, USE=use)
    first = min(events.index(each) for each in ("atom", "ld.global") if each in events)
    behind = events[first + 1 :]
    between = behind[: behind.index("ld.global")] if "ld.global" in behind else []
    if use not in ("dead", "none"):
        assert row.warps_for_result_barrier is not None
        acquired = row.barrier_after_acquire and sem in ("acquire", "acq_rel")
        assert ("bar.sync" in between) == (acquired or warps >= row.warps_for_result_barrier)
    elif operation in ("add", "max", "exchange") and sem == "relaxed":
        assert "bar.sync" not in events


@pytest.mark.parametrize("warps", [2, 4, 8])
def test_a_reduction_over_all_warps_is_a_barrier(row: MemoryModel, warps: int) -> None:
    assert row.barrier_in_reduction
    events = _events(rows_maximum, "fp32", warps, ROWS=1, COLUMNS=warps * 32)
    assert events == ["ld.global", "bar.sync", "st.global"]
    assert _events(running_sum, "fp32", warps) == ["ld.global", "bar.sync", "st.global"]


def test_a_reduction_inside_a_warp_is_none() -> None:
    assert "bar.sync" not in _events(rows_maximum, "fp32", ROWS=128, COLUMNS=8)
    assert "bar.sync" not in _events(rows_maximum, "fp32", 1, ROWS=1, COLUMNS=1024)


@pytest.mark.parametrize(
    ("version", "target", "name", "known", "added"),
    [
        ("3.7.1", "cuda:80", "triton 3.7 cuda", True, False),
        ("3.8.0", "cuda:90", "triton 3.8 cuda", True, False),
        ("3.9.0", "cuda:80", "triton 3.9 cuda", True, True),
        ("3.9.0", "hip:gfx942", "triton 3.9 hip (nothing added)", False, False),
        ("4.0.0", "cuda:80", "triton 4.0 cuda (nothing added)", False, False),
        ("", "cuda:80", "triton ? cuda (nothing added)", False, False),
    ],
)
def test_rows(version: str, target: str, name: str, known: bool, added: bool) -> None:
    model = memory_model(version, target)
    assert (model.name, model.known) == (name, known)
    assert (model.barrier_before_release, model.barrier_after_acquire) == (added, added)
    assert (model.barrier_in_reduction, model.warps_for_result_barrier is not None) == (known, known)
