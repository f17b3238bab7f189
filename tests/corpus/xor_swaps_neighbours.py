# exclusive or permutes programs and lanes
# expect: ok
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    p = tl.program_id(0) ^ 1
    tl.store(x + p * BLOCK + (tl.arange(0, BLOCK) ^ 3), p)


def arguments():
    return dict(x=torch.zeros(64, dtype=torch.int32), BLOCK=8)
