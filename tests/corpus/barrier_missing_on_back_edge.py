# the next round may load before another thread has stored
# expect: races RAW R2 R1
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, ROUNDS, BLOCK: tl.constexpr):
    base = tl.program_id(0) * BLOCK
    lane = tl.arange(0, BLOCK)
    for k in range(ROUNDS):
        v = tl.load(x + base + (lane + 1) % BLOCK)  # R1
        tl.debug_barrier()
        tl.store(x + base + lane, v)  # R2


def arguments():
    return dict(x=torch.zeros(64), ROUNDS=3, BLOCK=32)
