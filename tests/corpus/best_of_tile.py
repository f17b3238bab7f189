# the place of the largest element, two programs find the same one
# expect: races WAW R1 R1
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, best, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    values = tl.load(x + p * BLOCK + tl.arange(0, BLOCK))
    tl.store(best + tl.argmax(values, axis=0), p)  # R1


def arguments():
    x = torch.zeros(3, 16, dtype=torch.int32)
    x[0, 3] = x[1, 7] = x[1, 9] = x[2, 7] = 5
    return dict(x=x, best=torch.zeros(16, dtype=torch.int32), BLOCK=16)
