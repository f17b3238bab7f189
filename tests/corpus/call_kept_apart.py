# a function that is not inlined
# expect: ok
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit(noinline=True)
def write_tile(x, start, SIZE: tl.constexpr):
    tl.store(x + start + tl.arange(0, SIZE), start)


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    write_tile(x, p * BLOCK, BLOCK)


def arguments():
    return dict(x=torch.zeros(64, dtype=torch.int32), BLOCK=8)
