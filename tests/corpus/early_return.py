# programs past the end do nothing
# expect: ok
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, live, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    if p >= live:
        return
    tl.store(x + (p % live) * BLOCK + tl.arange(0, BLOCK), p)


def arguments():
    return dict(x=torch.zeros(64, dtype=torch.int32), live=2, BLOCK=8)
