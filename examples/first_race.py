"""Adds two vectors, once with blocks side by side and once with blocks that overlap."""

import torch
import triton
import triton.language as tl


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


@triton.jit
def add_overlapping(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask=mask) + tl.load(y + offsets, mask=mask), mask=mask)


def main() -> None:
    n = 1000
    x, y = torch.rand(n, device="cuda"), torch.rand(n, device="cuda")
    out = torch.empty_like(x)
    add[(triton.cdiv(n, 256),)](x, y, out, n, BLOCK=256)
    add_overlapping[(triton.cdiv(n, 128),)](x, y, out, n, BLOCK=256)
    print("both launches are done")


if __name__ == "__main__":
    main()
