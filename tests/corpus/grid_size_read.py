# one program has nobody to race with, two that only ask how many they are meet
# expect: ok
# any-grid: races
# grid: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x):
    tl.store(x + tl.num_programs(0), 1)


def arguments():
    return dict(x=torch.zeros(8, dtype=torch.int32))
