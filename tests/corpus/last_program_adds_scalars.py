# Triton hands the ticket to all threads through a barrier, and so they see what the one thread has stored before
# expect: ok
# any-grid: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, parts, count, out, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    tl.store(parts + p, tl.load(x + p))  # R1
    t = tl.atomic_add(count, 1, sem="acq_rel")
    if t == n - 1:
        lane = tl.arange(0, PARTS)
        tl.store(out, tl.sum(tl.load(parts + lane, mask=lane < n, other=0), 0))  # R2


def arguments():
    return dict(
        x=torch.zeros(8, dtype=torch.int32),
        parts=torch.zeros(8, dtype=torch.int32),
        count=torch.zeros(1, dtype=torch.int32),
        out=torch.zeros(1, dtype=torch.int32),
        BLOCK=32,
        PARTS=8,
    )
