# a plain load beside atomics of other programs (and beside the other threads of its own)
# expect: races WAR R1 R2
# any-grid: races
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(count, out):
    p = tl.program_id(0)
    seen = tl.load(count)  # R1
    tl.atomic_add(count, 1)  # R2
    tl.store(out + p, seen)


def arguments():
    return dict(count=torch.zeros(1, dtype=torch.int32), out=torch.zeros(4, dtype=torch.int32))
