# the sums go where the first row is read from, and each depends on its own row only
# expect: races WAR R1 R2
# any-grid: races
# grid: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, R: tl.constexpr, C: tl.constexpr):
    base = x + tl.program_id(0) * R * C
    v = tl.load(base + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])  # R1
    tl.store(base + tl.arange(0, R), tl.sum(v, 1))  # R2


def arguments():
    return dict(x=torch.zeros(8 * 16 * 6), R=8, C=16)
