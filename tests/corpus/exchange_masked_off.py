# where the exchange is switched off, what is stored does not depend on what was loaded
# expect: races WAR R1 R2
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, cells, kept, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    i = tl.program_id(0) * BLOCK + lane
    v = tl.load(x + i)  # R1
    old = tl.atomic_xchg(cells + i, v, mask=lane < kept, sem="relaxed")
    tl.store(x + i, old)  # R2


def arguments():
    return dict(x=torch.zeros(192, dtype=torch.int32), cells=torch.zeros(192, dtype=torch.int32), kept=20, BLOCK=32)
