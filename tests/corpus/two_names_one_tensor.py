# both arguments are one tensor
# expect: races WAR R1 R2
# any-grid: races
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
    x = torch.zeros(64)
    return dict(a=x, b=x, BLOCK=8)
