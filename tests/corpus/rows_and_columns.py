# a tile per program, the last column of tiles masked
# expect: ok
# any-grid: ok
# grid: 2, 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, ld, R: tl.constexpr, C: tl.constexpr):
    r = tl.program_id(0) * R + tl.arange(0, R)
    c = tl.program_id(1) * C + tl.arange(0, C)
    tl.store(x + r[:, None] * ld + c[None, :], r[:, None] + c[None, :], mask=c[None, :] < ld)


def arguments():
    return dict(x=torch.zeros(8 * 20 + 24, dtype=torch.int32), ld=20, R=4, C=8)
