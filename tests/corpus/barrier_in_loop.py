# rotating a tile needs a barrier after the loads and one after the stores
# expect: ok
# any-grid: ok
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, ROUNDS, BLOCK: tl.constexpr):
    base = tl.program_id(0) * BLOCK
    lane = tl.arange(0, BLOCK)
    for k in range(ROUNDS):
        v = tl.load(x + base + (lane + 1) % BLOCK)  # R1
        tl.debug_barrier()
        tl.store(x + base + lane, v)  # R2
        tl.debug_barrier()
    tl.store(y + base + lane, lane)


def arguments():
    return dict(x=torch.zeros(64), y=torch.zeros(64, dtype=torch.int32), ROUNDS=3, BLOCK=32)
