# a single program has nobody to race with
# expect: ok
# grid: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(out):
    tl.store(out + tl.program_id(0) * 0, 7)


def arguments():
    return dict(out=torch.zeros(1, dtype=torch.int32))
