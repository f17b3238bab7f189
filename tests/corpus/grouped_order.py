# tiles in grouped order, the last group smaller
# expect: ok
# grid: 12
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, rows, columns, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    width = GROUP * columns
    first = (p // width) * GROUP
    size = min(rows - first, GROUP)
    r = first + (p % width) % size
    c = (p % width) // size
    tl.store(x + (r * columns + c) * BLOCK + tl.arange(0, BLOCK), p)


def arguments():
    return dict(x=torch.zeros(12 * 8, dtype=torch.int32), rows=3, columns=4, GROUP=2, BLOCK=8)
