# nobody looks at the count, so no barrier hands it to the other threads, which load what one thread has stored
# expect: races RAW R1 R2
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, count, out, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    tl.store(x + p * BLOCK, p)  # R1
    tl.atomic_add(count, 1, sem="acq_rel")
    tl.store(out + p * BLOCK + lane, tl.load(x + p * BLOCK + lane))  # R2


def arguments():
    return dict(
        x=torch.zeros(64, dtype=torch.int32),
        count=torch.zeros(1, dtype=torch.int32),
        out=torch.zeros(64, dtype=torch.int32),
        BLOCK=32,
    )
