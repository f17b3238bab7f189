# the smaller last group is not accounted for
# expect: races WAW R1 R1
# grid: 12
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, rows, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    width = GROUP * columns
    first = (p // width) * GROUP
    r = first + (p % width) % GROUP
    c = (p % width) // GROUP
    tl.store(x + ((r % rows) * columns + c) * BLOCK + tl.arange(0, BLOCK), p)  # R1


def arguments():
    return dict(x=torch.zeros(12 * 8, dtype=torch.int32), rows=3, columns=4, GROUP=2, BLOCK=8)
