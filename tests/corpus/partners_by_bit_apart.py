# the partner of the last round is a lane of the next program
# expect: races RAW R1 R2
# any-grid: races
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, LOG: tl.constexpr, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    row = x + tl.program_id(0) * BLOCK
    for s in range(LOG):
        a = tl.load(row + lane)
        b = tl.load(row + (lane ^ (1 << s)))  # R1
        tl.debug_barrier()
        tl.store(row + lane, a + b)  # R2
        tl.debug_barrier()


def arguments():
    return dict(x=torch.zeros(128), LOG=6, BLOCK=32)
