# program 0 passes no barrier between its store and its load, the others pass some
# expect: races RAW R1 R2
# any-grid: races
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, ROUNDS, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    if p == 0:
        tl.store(x + p * BLOCK + lane, p)  # R1
    else:
        for k in range(ROUNDS):
            tl.debug_barrier()
    v = tl.load(x + p * BLOCK + lane)  # R2
    tl.store(y + p * BLOCK + lane, v)


def arguments():
    return dict(
        x=torch.zeros(64, dtype=torch.int32),
        y=torch.zeros(64, dtype=torch.int32),
        ROUNDS=2,
        BLOCK=8,
    )
