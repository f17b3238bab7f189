"""Overlapping blocks, reached through a helper, and a table with an entry twice."""

import torch
import triton
import triton.language as tl


@triton.jit
def put(out, places, value, n):
    tl.store(out + places, value, mask=places < n)


@triton.jit
def fill(x, out, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * 32 + tl.arange(0, BLOCK)
    put(out, lanes, tl.load(x + lanes, mask=lanes < n), n)


@triton.jit
def scatter(index, out, BLOCK: tl.constexpr):
    places = tl.load(index + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + places, 1.0)


if __name__ == "__main__":
    x, out = torch.zeros(256, device="cuda"), torch.zeros(256, device="cuda")
    fill[(4,)](x, out, 200, BLOCK=64)
    table = torch.arange(128, dtype=torch.int32, device="cuda")
    table[100] = 17
    scatter[(2,)](table, out, BLOCK=64)
