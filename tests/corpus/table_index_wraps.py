# an index of 64 bits that wraps around to the program's own entry of a table; two entries lie too close together
# expect: races WAW R1 R1
# any-grid: races
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, table, HALF, BLOCK: tl.constexpr):
    p = tl.program_id(0).to(tl.int64)
    start = tl.load(table + (p * HALF * 4 + p))
    tl.store(x + start + tl.arange(0, BLOCK), 1)  # R1


def arguments():
    table = torch.tensor([0, 16, 32, 40], dtype=torch.int32)
    return dict(x=torch.zeros(64, dtype=torch.int32), table=table, HALF=1 << 62, BLOCK=16)
