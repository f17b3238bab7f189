# each lane stores what it loaded
# expect: ok
# any-grid: ok
# grid: 4
# warps: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)
    tl.store(x + i, v * 2, mask=i < n)


def arguments():
    return dict(x=torch.zeros(128), n=100, BLOCK=32)
