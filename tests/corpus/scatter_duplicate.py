# the last entry of the table repeats the first
# expect: races WAW R1 R1
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(order, x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + tl.load(order + i), i)  # R1


def arguments():
    return dict(
        order=torch.cat([torch.arange(31, dtype=torch.int32), torch.tensor([0], dtype=torch.int32)]),
        x=torch.zeros(32, dtype=torch.int32),
        BLOCK=8,
    )
