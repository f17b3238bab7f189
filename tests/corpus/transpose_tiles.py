# out of place, tile by tile
# expect: ok
# grid: 2, 3
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, y, rows, columns, T: tl.constexpr):
    r = tl.program_id(0) * T + tl.arange(0, T)
    c = tl.program_id(1) * T + tl.arange(0, T)
    v = tl.load(x + r[:, None] * columns + c[None, :])
    tl.store(y + c[:, None] * rows + r[None, :], tl.trans(v))


def arguments():
    return dict(x=torch.zeros(8, 12), y=torch.zeros(12, 8), rows=8, columns=12, T=4)
