"""Kernels whose runs are compared with verdicts."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def fill(out, STEP: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + lanes, lanes)


@triton.jit
def _tail(x, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    return tl.load(x + lanes, mask=lanes < n, other=0)


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def sums(x, out, n, BLOCK: tl.constexpr):
    """Device functions, a reduction of its own, and the standard library's."""
    v = _tail(x, n, BLOCK)
    tl.store(out + tl.program_id(0), tl.reduce(v, 0, _add) + tl.sum(v, 0) + tl.cdiv(n, BLOCK))


@triton.jit
def unused_load(x, out, BLOCK: tl.constexpr):
    """What is loaded here is written by the neighbour; nothing uses it, so the compiled kernel does not load it."""
    p = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    tl.load(out + (p + 1) * BLOCK + lanes)
    tl.store(out + p * BLOCK + lanes, tl.load(x + p * BLOCK + lanes))


@triton.jit
def reaches_out(out, FAR: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0).to(tl.int64) * FAR + tl.arange(0, BLOCK), 1)


@triton.jit
def assembly(x, out, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.inline_asm_elementwise("add.s32 $0, $1, 1;", "=r,r", [tl.load(x + lanes)], tl.int32, is_pure=True, pack=1)
    tl.store(out + lanes, v)


@triton.jit
def waits_forever(flag, out):
    while tl.atomic_add(flag, 0) == 0:
        pass
    tl.store(out + tl.program_id(0), 1)


@triton.autotune([triton.Config({"STEP": 16}), triton.Config({"STEP": 8})], key=[])
@triton.jit
def tuned(out, STEP: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + lanes, lanes)
