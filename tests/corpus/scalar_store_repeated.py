# every iteration stores the same element: one thread does it each time
# expect: ok
# strict: races WAW R1 R1
# any-grid: ok
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, rounds):
    p = tl.program_id(0)
    for i in range(rounds):
        tl.store(x + p, i)  # R1


def arguments():
    return dict(x=torch.zeros(8, dtype=torch.int32), rounds=3)
