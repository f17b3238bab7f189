# each lane takes its grandparent for its parent, and all are their own
# expect: ok
# judge: interleavings
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(parents, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    parent = tl.load(parents + at)
    found = tl.load(parents + parent)
    tl.store(parents + at, found)


def arguments():
    return dict(parents=torch.arange(64, dtype=torch.int32), BLOCK=32)
