# the store does not depend on the load, and a tile of 32 is loaded by more than one warp
# expect: races WAR R1 R2
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)  # R1
    tl.store(y + i, v)
    tl.store(x + i, 0.0)  # R2


def arguments():
    return dict(x=torch.zeros(64), y=torch.zeros(64), BLOCK=32)
