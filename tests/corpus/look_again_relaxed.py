# waits inside a loop, and reads in its second round what the relaxed look has seen announced
# expect: races RAW R1 R2
# judge: interleavings
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(sums, ready, out):
    p = tl.program_id(0)
    if p == 0:
        tl.store(sums, 5)  # R1
        tl.debug_barrier()
        tl.atomic_xchg(ready, 1, sem="release")
    else:
        found = 0
        k = p - 1
        while k >= 0:
            if tl.atomic_add(ready + k, 0, sem="relaxed") == 1:
                tl.debug_barrier()
                found += tl.load(sums + k)  # R2
                k = -1
        tl.store(out + p, found)


def arguments():
    return dict(
        sums=torch.zeros(8, dtype=torch.int32),
        ready=torch.zeros(8, dtype=torch.int32),
        out=torch.zeros(8, dtype=torch.int32),
    )
