# atomics exclude each other only on exactly the same bytes
# expect: races WAW R1 R2
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(narrow, wide):
    tl.atomic_add(narrow + tl.program_id(0), 1, sem="relaxed")  # R1
    tl.atomic_add(wide, 1, sem="relaxed")  # R2


def arguments():
    words = torch.zeros(2, dtype=torch.int64)
    return dict(narrow=words.view(torch.int32), wide=words)
