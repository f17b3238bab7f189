# each program counts in cells of its own, and what it counted says where it stores
# expect: ok
# judge: interleavings
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(keys, count, out, EACH: tl.constexpr, KINDS: tl.constexpr):
    p = tl.program_id(0)
    for i in range(EACH):
        own = count + p * KINDS + tl.load(keys + p * EACH + i)
        place = tl.load(own)
        tl.debug_barrier()
        tl.store(own, place + 1)
        tl.store(out + place, i)
        tl.debug_barrier()


def arguments():
    keys = torch.tensor([0, 1, 0, 1, 0, 1], dtype=torch.int32)
    count = torch.tensor([0, 3, 2, 4], dtype=torch.int32)
    return dict(keys=keys, count=count, out=torch.zeros(6, dtype=torch.int32), EACH=3, KINDS=2)
