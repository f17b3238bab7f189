"""Kernels that are launched from several threads."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def fill(out, STEP: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + lanes, lanes)


@triton.autotune([triton.Config({"STEP": step}) for step in (16, 8, 24, 20, 4, 32)], key=[])
@triton.jit
def tuned(out, STEP: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + lanes, lanes)
