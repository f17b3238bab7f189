# a word and a byte inside it
# expect: races WAW R1 R2
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(words, bytes, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    tl.store(words + p * BLOCK + lane, p, mask=p == 0)  # R1
    tl.store(bytes + 31, p, mask=p == 1)  # R2


def arguments():
    x = torch.zeros(64, dtype=torch.int32)
    return dict(words=x, bytes=x.view(torch.int8), BLOCK=8)
