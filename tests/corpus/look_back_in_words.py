# decoupled look-back whose sums and flags are one word each: atomics exclude each other wherever they look
# expect: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, states, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lanes = p * BLOCK + tl.arange(0, BLOCK)
    values = tl.load(x + lanes)
    total = tl.sum(values)
    tl.atomic_xchg(states + p, total * 4 + (2 if p == 0 else 1), sem="relaxed")
    before = 0
    if p > 0:
        at = p - 1
        looking = True
        while looking:
            state = tl.atomic_add(states + at, 0, sem="relaxed")
            if state != 0:
                before += state // 4
                at -= 1
                looking = state % 4 == 1
        tl.atomic_xchg(states + p, (before + total) * 4 + 2, sem="relaxed")
    tl.store(x + lanes, tl.cumsum(values) + before)


def arguments():
    return dict(x=torch.ones(96, dtype=torch.int32), states=torch.zeros(3, dtype=torch.int32), BLOCK=32)
