# each lane takes its grandparent for its parent, and one parent belongs to the other program
# expect: races RAW R1 R2
# judge: interleavings
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(parents, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    parent = tl.load(parents + at)
    found = tl.load(parents + parent)  # R1
    tl.store(parents + at, found)  # R2


def arguments():
    parents = torch.arange(64, dtype=torch.int32)
    parents[40] = 3
    return dict(parents=parents, BLOCK=32)
