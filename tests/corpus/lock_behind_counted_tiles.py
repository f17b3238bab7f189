# all count in tiles first, which orders nothing that comes later; the lock is given back before all threads have stored
# expect: races RAW R1 R2, WAW R2 R2
# triton 3.9: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, counts, lock, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    tl.atomic_add(counts + lane, 1)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.load(x + lane)  # R1
    tl.store(x + lane, seen + 1)  # R2
    tl.atomic_xchg(lock, 0)


def arguments():
    return dict(
        x=torch.zeros(64, dtype=torch.int32),
        counts=torch.zeros(64, dtype=torch.int32),
        lock=torch.zeros(1, dtype=torch.int32),
        BLOCK=64,
    )
