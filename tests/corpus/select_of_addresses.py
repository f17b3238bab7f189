# two programs share two tiles, lane by lane
# expect: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, cut, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    i = (p // 2) * BLOCK + lane
    tl.store(tl.where((lane < cut) == (p % 2 == 0), a + i, b + i), p)


def arguments():
    return dict(a=torch.zeros(64, dtype=torch.int32), b=torch.zeros(64, dtype=torch.int32), cut=3, BLOCK=8)
