"""The script that the tests of this folder check, and how they run the command line."""

from __future__ import annotations

from collections.abc import Callable

from click.testing import Result

Check = Callable[..., Result]

KERNELS = """\
import torch
import triton
import triton.language as tl


@triton.jit
def put(out, value, STEP: tl.constexpr):
    tl.store(out + tl.program_id(0) * STEP + tl.arange(0, 16), value)


@triton.jit
def twice(out, STEP: tl.constexpr):
    offsets = tl.program_id(0) * STEP + tl.arange(0, 16)
    tl.store(out + offsets, 1)


def ints(n=128):
    return torch.zeros(n, dtype=torch.int32, device="cuda")


if __name__ == "__main__":
    put[(4,)](ints(), 1, STEP=8)
    twice[(4,)](ints(), STEP=8)
"""
