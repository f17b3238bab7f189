# each program reverses its own tile
# expect: ok
# any-grid: ok
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    j = tl.program_id(0) * BLOCK + BLOCK - 1 - tl.arange(0, BLOCK)
    v = tl.load(x + i)
    tl.debug_barrier()
    tl.store(x + j, v)


def arguments():
    return dict(x=torch.zeros(64), BLOCK=32)
