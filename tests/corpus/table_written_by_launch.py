# what one program reads another one writes
# expect: races RAW R2 R1
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(table, x):
    p = tl.program_id(0)
    j = tl.load(table + 1 - p)  # R1
    tl.store(x + p, j)
    tl.store(table + p, p)  # R2


def arguments():
    return dict(table=torch.zeros(2, dtype=torch.int32), x=torch.zeros(4, dtype=torch.int32))
