# two bins count the same number of elements
# expect: races WAW R1 R1
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, BLOCK: tl.constexpr, BINS: tl.constexpr):
    p = tl.program_id(0)
    counts = tl.histogram(tl.load(x + tl.arange(0, BLOCK)), BINS)
    tl.store(y + p * 32 + counts, tl.arange(0, BINS))  # R1


def arguments():
    x = torch.tensor([0, 1, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 2, 1], dtype=torch.int32)
    return dict(
        x=x[torch.tensor([0, 1, 3, 6] * 4)].contiguous(), y=torch.zeros(64, dtype=torch.int32), BLOCK=16, BINS=4
    )
