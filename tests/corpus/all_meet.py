# a barrier of the whole grid by counting
# expect: ok
# any-grid: ok
# judge: interleavings
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, count, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, BLOCK)
    tl.store(x + p * BLOCK + lane, lane)  # R1
    tl.debug_barrier()
    tl.atomic_add(count, 1, sem="release")
    while tl.atomic_add(count, 0, sem="acquire") != n:
        pass
    v = tl.load(x + ((p + 1) % n) * BLOCK + lane)  # R2
    tl.store(y + p * BLOCK + lane, v)


def arguments():
    return dict(
        x=torch.zeros(128, dtype=torch.int32),
        y=torch.zeros(128, dtype=torch.int32),
        count=torch.zeros(1, dtype=torch.int32),
        BLOCK=32,
    )
