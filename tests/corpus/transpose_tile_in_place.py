# the barrier stands between the loads and the stores of one tile
# expect: ok
# any-grid: ok
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, T: tl.constexpr):
    r = tl.arange(0, T)[:, None]
    c = tl.arange(0, T)[None, :]
    base = x + tl.program_id(0) * T * T
    v = tl.load(base + r * T + c)  # R1
    tl.debug_barrier()
    tl.store(base + c * T + r, v)  # R2


def arguments():
    return dict(x=torch.zeros(3, 4, 4), T=4)
