# (0-2)//2 is -1 but (1-2)//2 is 0: programs 1, 2 and 3 share a tile
# expect: races WAW R1 R1
# any-grid: races
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    tl.store(x + ((p - 2) // 2 + 1) * BLOCK + tl.arange(0, BLOCK), p)  # R1


def arguments():
    return dict(x=torch.zeros(64, dtype=torch.int32), BLOCK=8)
