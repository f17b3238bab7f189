# one sum per row
# expect: ok
# any-grid: ok
# grid: 4
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    c = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + c, mask=c < columns, other=0.0)
    tl.store(out + row, tl.sum(v, 0))


def arguments():
    return dict(x=torch.zeros(4, 20), out=torch.zeros(4), columns=20, BLOCK=32)
