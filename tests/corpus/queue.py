# tickets hand out tiles, each once
# expect: ok
# any-grid: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, head, total, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    t = tl.atomic_add(head, 1, sem="relaxed")
    while t < total:
        tl.store(x + t * BLOCK + lane, t)  # R1
        t = tl.atomic_add(head, 1, sem="relaxed")


def arguments():
    return dict(x=torch.zeros(160, dtype=torch.int32), head=torch.zeros(1, dtype=torch.int32), total=5, BLOCK=32)
