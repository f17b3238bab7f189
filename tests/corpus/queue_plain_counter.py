# a counter without atomics
# expect: races RAW R2 R1, WAW R2 R2, WAR R1 R2, WAW R3 R3
# judge: interleavings
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, head, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    t = tl.load(head)  # R1
    tl.store(head, t + 1)  # R2
    tl.store(x + lane, 1)  # R3


def arguments():
    return dict(x=torch.zeros(160, dtype=torch.int32), head=torch.zeros(1, dtype=torch.int32), BLOCK=32)
