# the product of program 2 wraps to 0, that of program 1 to -2**31
# expect: races WAW R1 R1
# any-grid: races
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    tl.store(x + (((p * 1073741824) * 2) // 1073741824 + 2) * BLOCK + tl.arange(0, BLOCK), p)  # R1


def arguments():
    return dict(x=torch.zeros(64, dtype=torch.int32), BLOCK=8)
