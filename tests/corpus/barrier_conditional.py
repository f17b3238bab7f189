# program 1 passes no barrier
# expect: races WAR R1 R2
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, limit, BLOCK: tl.constexpr):
    base = tl.program_id(0) * BLOCK
    lane = tl.arange(0, BLOCK)
    v = tl.load(x + base + lane)  # R1
    if tl.program_id(0) < limit:
        tl.debug_barrier()
    tl.store(x + base + BLOCK - 1 - lane, v)  # R2


def arguments():
    return dict(x=torch.zeros(256), limit=1, BLOCK=32)
