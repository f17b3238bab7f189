# two buffers change places after each round, and every program keeps to its tile of both
# expect: ok
# strict: ok
# any-grid: ok
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(a, b, rounds, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    src = a
    dst = b
    for _ in range(rounds):
        tl.store(dst + i, tl.load(src + i) + 1)
        src, dst = dst, src
        tl.debug_barrier()


def arguments():
    return dict(a=torch.zeros(192), b=torch.zeros(192), rounds=3, BLOCK=32)
