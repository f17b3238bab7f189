# only the mask keeps the tiles apart
# expect: ok
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(out, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK * 2)
    i = tl.program_id(0) * BLOCK + lane
    tl.store(out + i, lane, mask=lane < BLOCK)


def arguments():
    return dict(out=torch.zeros(320, dtype=torch.int32), BLOCK=64)
