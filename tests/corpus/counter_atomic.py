# a histogram by relaxed atomics
# expect: ok
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(keys, counts, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(keys + i), 1, sem="relaxed")  # R1


def arguments():
    return dict(keys=torch.arange(96, dtype=torch.int32) % 5, counts=torch.zeros(8, dtype=torch.int32), BLOCK=16)
