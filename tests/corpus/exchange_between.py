# what is stored depends on what was loaded, through an exchange
# expect: ok
# any-grid: ok
# grid: 2
# warps: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, cells, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i)
    old = tl.atomic_xchg(cells + i, v, sem="relaxed")
    tl.store(x + i, old)


def arguments():
    return dict(x=torch.zeros(192, dtype=torch.int32), cells=torch.zeros(192, dtype=torch.int32), BLOCK=32)
