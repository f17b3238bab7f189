# each element of the product depends on the element it replaces
# expect: ok
# any-grid: ok
# grid: 2
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, N: tl.constexpr):
    at = x + tl.program_id(0) * N * N + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(at)
    tl.store(at, tl.dot(v, v))


def arguments():
    return dict(x=torch.zeros(6 * 16 * 16), N=16)
