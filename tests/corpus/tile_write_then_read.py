# each thread reads back its own element
# expect: ok
# strict: races RAW R1 R2
# grid: 2
# warps: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, 1.0)  # R1
    v = tl.load(x + i)  # R2
    tl.store(y + i, v)


def arguments():
    return dict(x=torch.zeros(64), y=torch.zeros(64), BLOCK=32)
