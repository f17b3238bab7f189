# each lane meets the partner whose number differs in one bit, round after round
# expect: ok
# strict: ok
# any-grid: ok
# grid: 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, LOG: tl.constexpr, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    row = x + tl.program_id(0) * BLOCK
    for s in range(LOG):
        a = tl.load(row + lane)
        b = tl.load(row + (lane ^ (1 << s)))
        tl.debug_barrier()
        tl.store(row + lane, a + b)
        tl.debug_barrier()


def arguments():
    return dict(x=torch.zeros(96), LOG=5, BLOCK=32)
