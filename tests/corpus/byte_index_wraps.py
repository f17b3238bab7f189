# eight bits hold 0 and -128 only: programs 0 and 2 meet
# expect: races WAW R1 R1
# any-grid: races
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x):
    p = tl.program_id(0)
    tl.store(x + (p * 128).to(tl.int8).to(tl.int32) + 128, p)  # R1


def arguments():
    return dict(x=torch.zeros(512, dtype=torch.int32))
