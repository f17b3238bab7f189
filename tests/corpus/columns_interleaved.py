# programs take every fourth element
# expect: ok
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    tl.store(x + tl.arange(0, BLOCK) * 4 + p % 4, p, mask=p < 4)


def arguments():
    return dict(x=torch.zeros(64, dtype=torch.int32), BLOCK=16)
