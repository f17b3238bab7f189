# the table is a permutation
# expect: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(order, x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + tl.load(order + i), i)


def arguments():
    return dict(order=(torch.arange(32, dtype=torch.int32) * 5 + 3) % 32, x=torch.zeros(32, dtype=torch.int32), BLOCK=8)
