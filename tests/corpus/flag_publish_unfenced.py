# the flag speaks for one thread only: the other threads' stores may come later
# expect: races RAW R1 R2
# triton 3.9: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(data, flag, out, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    if p == 0:
        tl.store(data + lane, lane)  # R1
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_cas(flag, 1, 1, sem="acquire") != 1:
            pass
        v = tl.load(data + lane)  # R2
        tl.store(out + p * BLOCK + lane, v)


def arguments():
    return dict(
        data=torch.zeros(32, dtype=torch.int32),
        flag=torch.zeros(1, dtype=torch.int32),
        out=torch.zeros(96, dtype=torch.int32),
        BLOCK=32,
    )
