# writing equal values is no excuse
# expect: races WAW R1 R1
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(out):
    tl.store(out, 7)  # R1


def arguments():
    return dict(out=torch.zeros(1, dtype=torch.int32))
