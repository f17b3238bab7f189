# where a loop has moved a pointer to is where the store behind it goes; the next program begins in the middle of it
# expect: races WAW R1 R1
# any-grid: races
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, ROUNDS, BLOCK: tl.constexpr):
    pointers = x + tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    for _ in range(ROUNDS):
        pointers += BLOCK
    tl.store(pointers, 1.0)  # R1


def arguments():
    return dict(x=torch.zeros(256), ROUNDS=3, BLOCK=32)
