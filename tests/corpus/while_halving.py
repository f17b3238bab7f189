# a loop whose trips only running it tells
# expect: ok
# any-grid: ok
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    width = n
    while width > 0:
        tl.store(x + (p * n + width - 1) * BLOCK + lane, width)
        width = width // 2


def arguments():
    return dict(x=torch.zeros(128, dtype=torch.int32), n=8, BLOCK=4)
