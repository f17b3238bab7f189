# one tile per program, the tail masked
# expect: ok
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    a = tl.load(x + i, mask=inside)
    b = tl.load(y + i, mask=inside)
    tl.store(out + i, a + b, mask=inside)


def arguments():
    return dict(x=torch.zeros(200), y=torch.zeros(200), out=torch.zeros(200), n=200, BLOCK=64)
