# the barrier orders the lanes of one program
# expect: ok
# any-grid: races
# grid: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)  # R1
    tl.debug_barrier()
    tl.store(x + i + 1, v)  # R2


def arguments():
    return dict(x=torch.zeros(256), BLOCK=32)
