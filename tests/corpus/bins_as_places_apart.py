# all bins count different numbers of elements
# expect: ok
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, BLOCK: tl.constexpr, BINS: tl.constexpr):
    p = tl.program_id(0)
    counts = tl.histogram(tl.load(x + tl.arange(0, BLOCK)), BINS)
    tl.store(y + p * 32 + counts, tl.arange(0, BINS))


def arguments():
    x = torch.tensor([0] * 1 + [1] * 3 + [2] * 4 + [3] * 8, dtype=torch.int32)
    return dict(x=x, y=torch.zeros(64, dtype=torch.int32), BLOCK=16, BINS=4)
