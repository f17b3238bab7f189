# the number that all programs wait for stays what it was in the first round
# expect: races RAW R2 R1, WAR R1 R2
# judge: interleavings
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, count, BLOCK: tl.constexpr, ROUNDS: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, BLOCK)
    there = (p + 1) % n
    for t in range(ROUNDS):
        found = tl.load(x + (2 * there + (t + 1) % 2) * BLOCK + lane)  # R1
        tl.store(x + (2 * p + t % 2) * BLOCK + lane, found + 1)  # R2
        tl.debug_barrier()
        tl.atomic_add(count, 1, sem="release")
        while tl.atomic_add(count, 0, sem="acquire") < n:
            pass


def arguments():
    return dict(
        x=torch.zeros(8 * 2 * 128, dtype=torch.int32),
        count=torch.zeros(1, dtype=torch.int32),
        BLOCK=128,
        ROUNDS=3,
    )
