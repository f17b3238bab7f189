# tiles twice as long as the distance between programs
# expect: races WAW R1 R1
# any-grid: races
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK * 2)
    tl.store(out + i, tl.load(x + i))  # R1


def arguments():
    return dict(x=torch.zeros(320), out=torch.zeros(320), BLOCK=64)
