# two halves of one tensor
# expect: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(a + i + 1)  # R1
    tl.store(b + i, v)  # R2


def arguments():
    x = torch.zeros(128)
    return dict(a=x, b=x[64:], BLOCK=8)
