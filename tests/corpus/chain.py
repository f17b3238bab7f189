# programs take turns, each waiting for the one before
# expect: ok
# any-grid: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, flags, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    if p > 0:
        while tl.atomic_add(flags + p - 1, 0, sem="acquire") != 1:
            pass
    v = tl.load(x + lane)  # R1
    tl.store(x + lane, v + p)  # R2
    tl.debug_barrier()
    tl.atomic_xchg(flags + p, 1, sem="release")


def arguments():
    return dict(x=torch.zeros(32), flags=torch.zeros(8, dtype=torch.int32), BLOCK=32)
