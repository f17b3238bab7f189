# programs look for an empty place with plain loads: two find the same one
# expect: races WAR R1 R2, WAW R2 R2
# judge: interleavings
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(keys, table, SIZE: tl.constexpr):
    key = tl.load(keys + tl.program_id(0))
    place = key % SIZE
    while tl.load(table + place) >= 0:  # R1
        place = (place + 1) % SIZE
    tl.store(table + place, key)  # R2


def arguments():
    table = torch.full((8,), -1, dtype=torch.int32)
    return dict(keys=torch.tensor([5, 13], dtype=torch.int32), table=table, SIZE=8)
