# one program: lane l reads what lane l-1 overwrites
# expect: races WAR R1 R2
# grid: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    v = tl.load(x + i)  # R1
    tl.store(x + i + 1, v)  # R2


def arguments():
    return dict(x=torch.zeros(64), BLOCK=32)
