# the ticket is drawn before all threads have stored
# expect: races RAW R1 R2
# triton 3.9: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, parts, count, out, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, BLOCK)
    tl.store(parts + p * BLOCK + lane, tl.load(x + p * BLOCK + lane))  # R1
    t = tl.atomic_add(count, 1, sem="acq_rel")
    if t == n - 1:
        total = tl.zeros([BLOCK], dtype=tl.float32)
        for k in range(n):
            total += tl.load(parts + k * BLOCK + lane)  # R2
        tl.store(out + lane, total)


def arguments():
    return dict(
        x=torch.zeros(128),
        parts=torch.zeros(128),
        count=torch.zeros(1, dtype=torch.int32),
        out=torch.zeros(32),
        BLOCK=32,
    )
