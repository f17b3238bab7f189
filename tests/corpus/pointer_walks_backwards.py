# each program walks into the tiles of the ones before
# expect: races WAW R1 R1
# any-grid: races
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, ROUNDS, BLOCK: tl.constexpr):
    p = x + (tl.program_id(0) + 4) * BLOCK + tl.arange(0, BLOCK)
    for k in range(ROUNDS):
        tl.store(p, k)  # R1
        p -= BLOCK


def arguments():
    return dict(x=torch.zeros(128, dtype=torch.int32), ROUNDS=4, BLOCK=8)
