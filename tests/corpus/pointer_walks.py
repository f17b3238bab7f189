# a pointer carried by the loop
# expect: ok
# any-grid: ok
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, ROUNDS, BLOCK: tl.constexpr):
    p = x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for k in range(ROUNDS):
        tl.store(p, k)
        p += tl.num_programs(0) * BLOCK


def arguments():
    return dict(x=torch.zeros(128, dtype=torch.int32), ROUNDS=4, BLOCK=8)
