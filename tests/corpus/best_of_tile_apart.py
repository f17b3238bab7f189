# the leftmost place of the largest element differs between the programs
# expect: ok
# any-grid: ok
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, best, n, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    if p < n:
        values = tl.load(x + p * BLOCK + tl.arange(0, BLOCK))
        tl.store(best + tl.argmax(values, axis=0), p)


def arguments():
    x = torch.zeros(3, 16, dtype=torch.int32)
    x[0, 3] = x[1, 7] = x[1, 9] = x[2, 9] = 5
    return dict(x=x, best=torch.zeros(16, dtype=torch.int32), n=3, BLOCK=16)
