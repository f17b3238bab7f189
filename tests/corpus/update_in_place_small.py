# each lane stores what it loaded; several threads load each element, one stores it
# expect: ok
# strict: races WAR R1 R2
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n)  # R1
    tl.store(x + i, v * 2, mask=i < n)  # R2


def arguments():
    return dict(x=torch.zeros(128), n=100, BLOCK=32)
