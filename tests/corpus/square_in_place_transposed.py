# an element of the product depends on its row and its column, not on what lies across the diagonal
# expect: races WAR R1 R2
# any-grid: races
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, N: tl.constexpr):
    at = x + tl.program_id(0) * N * N + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(at)  # R1
    tl.store(tl.trans(at), tl.dot(v, v))  # R2


def arguments():
    return dict(x=torch.zeros(6 * 16 * 16), N=16)
