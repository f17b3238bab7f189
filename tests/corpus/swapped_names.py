# variables that are other names for arguments
# expect: ok
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    first = b
    second = a
    if p == 0:
        base = first
    else:
        base = second
    tl.store(base + tl.arange(0, BLOCK), p)


def arguments():
    return dict(a=torch.zeros(8, dtype=torch.int32), b=torch.zeros(8, dtype=torch.int32), BLOCK=8)
