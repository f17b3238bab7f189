# a scalar is stored by one thread and loaded by all
# expect: races RAW R1 R2
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y):
    p = tl.program_id(0)
    tl.store(x + p, 1.0)  # R1
    v = tl.load(x + p)  # R2
    tl.store(y + p, v)


def arguments():
    return dict(x=torch.zeros(8), y=torch.zeros(8))
