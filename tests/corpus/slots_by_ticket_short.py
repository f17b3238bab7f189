# every program reserves one place too few
# expect: races WAW R1 R1
# grid: 3
# judge: interleavings
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(keep, count, y, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    flags = tl.load(keep + p * BLOCK + tl.arange(0, BLOCK))
    first = tl.atomic_add(count, tl.sum(flags, axis=0) - 1, sem="relaxed")
    place = tl.cumsum(flags, axis=0) - flags
    tl.store(y + first + place, p, mask=flags != 0)  # R1


def arguments():
    keep = (torch.arange(48) % 3 == 0).to(torch.int32)
    return dict(keep=keep, count=torch.zeros(1, dtype=torch.int32), y=torch.zeros(64, dtype=torch.int32), BLOCK=16)
