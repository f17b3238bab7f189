# unlocked before all threads have stored, with more contenders than can be interleaved
# expect: races RAW R2 R1, WAW R2 R2, WAR R1 R2
# triton 3.9: ok
# judge: interleavings
# grid: 250
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, lock, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    while tl.atomic_cas(lock, 0, 1, sem="acquire") == 1:
        pass
    v = tl.load(x + lane)  # R1
    tl.store(x + lane, v + 1)  # R2
    tl.atomic_xchg(lock, 0, sem="release")


def arguments():
    return dict(x=torch.zeros(32), lock=torch.zeros(1, dtype=torch.int32), BLOCK=32)
