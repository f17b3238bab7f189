# the mask of bits drops the lowest one
# expect: races WAW R1 R1
# any-grid: races
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    p = tl.program_id(0) & 2
    tl.store(x + p * BLOCK + tl.arange(0, BLOCK), p)  # R1


def arguments():
    return dict(x=torch.zeros(64, dtype=torch.int32), BLOCK=8)
