# programs that differ only along an axis the kernel never reads do the same
# expect: races WAW R1 R1
# grid: 2, 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, i)  # R1


def arguments():
    return dict(x=torch.zeros(64, dtype=torch.int32), BLOCK=16)
