# dropped lanes are stored too, where the next kept one goes
# expect: races WAW R1 R1
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(keep, x, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    flag = tl.load(keep + p * BLOCK + lane)
    place = tl.cumsum(flag, 0) - flag
    tl.store(x + p * BLOCK + place, lane)  # R1


def arguments():
    return dict(keep=torch.arange(32, dtype=torch.int32) % 2, x=torch.zeros(32, dtype=torch.int32), BLOCK=16)
