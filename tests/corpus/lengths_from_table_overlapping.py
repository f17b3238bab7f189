# the last tile of a sequence spills into the next
# expect: races WAW R1 R1
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(starts, x, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    begin = tl.load(starts + p)
    end = tl.load(starts + p + 1)
    for at in range(begin, end, BLOCK):
        i = at + tl.arange(0, BLOCK)
        tl.store(x + i, p)  # R1


def arguments():
    return dict(starts=torch.tensor([0, 5, 17, 20], dtype=torch.int32), x=torch.zeros(32, dtype=torch.int32), BLOCK=4)
