# only one program finds the slot free, so nothing needs an order
# expect: ok
# any-grid: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, taken, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    if tl.atomic_cas(taken, 0, 1, sem="relaxed") == 0:
        tl.store(x + tl.arange(0, BLOCK), p)  # R1


def arguments():
    return dict(x=torch.zeros(32, dtype=torch.int32), taken=torch.zeros(1, dtype=torch.int32), BLOCK=32)
