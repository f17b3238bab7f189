# 24 columns in rows of 20
# expect: races WAW R1 R1
# any-grid: races
# grid: 2, 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, ld, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    tl.store(x + r[:, None] * ld + c[None, :], r[:, None] + c[None, :])  # R1


def arguments():
    return dict(x=torch.zeros(8 * 20 + 24, dtype=torch.int32), ld=20, R=4, C=8)
