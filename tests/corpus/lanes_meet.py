# two lanes of one store on one element
# expect: races WAW R1 R1
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(out, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tl.store(out + tl.program_id(0) * BLOCK + lane // 2, lane)  # R1


def arguments():
    return dict(out=torch.zeros(64, dtype=torch.int32), BLOCK=32)
