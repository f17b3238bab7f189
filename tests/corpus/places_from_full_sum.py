# each program begins where the lengths before it end: a sum over all elements of a tile, in whatever order
# expect: ok
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(lengths, x, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    before = tl.sum(tl.where(lane < p, tl.load(lengths + lane), 0))
    tl.store(x + before + lane, p, mask=lane < tl.load(lengths + p))


def arguments():
    return dict(
        lengths=torch.tensor([5, 3, 7, 2, 0, 0, 0, 0], dtype=torch.int32), x=torch.zeros(32, dtype=torch.int32), BLOCK=8
    )
