"""Kernels whose answers are kept, and one whose are not."""

import triton
import triton.language as tl


@triton.jit
def fill(out, STEP: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + lanes, 1)


@triton.jit
def scatter(table, out, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.load(table + lanes), 1)
