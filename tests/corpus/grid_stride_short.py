# the step is one tile short
# expect: races WAW R1 R1
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, n, BLOCK: tl.constexpr):
    for start in range(tl.program_id(0) * BLOCK, n, tl.num_programs(0) * BLOCK - BLOCK):
        i = start + tl.arange(0, BLOCK)
        tl.store(x + i, i, mask=i < n)  # R1


def arguments():
    return dict(x=torch.zeros(200, dtype=torch.int32), n=200, BLOCK=16)
