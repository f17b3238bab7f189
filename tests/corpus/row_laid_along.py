# a row takes the place of a column that a loop carries: from the second round on, which another grid has, its elements meet
# expect: ok
# any-grid: races
# grid: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    line = tl.arange(0, BLOCK)
    columns = tl.arange(0, BLOCK)[None, :]
    row = line[:, None] + tl.zeros((BLOCK, BLOCK), tl.int32)
    rounds = tl.num_programs(0)
    for i in range(rounds):
        tl.store(x + tl.program_id(0) * 256 + row * BLOCK + columns, i)
        row = line[None, :] + tl.zeros((BLOCK, BLOCK), tl.int32)
        line += BLOCK


def arguments():
    return dict(x=torch.zeros(2048, dtype=torch.int32), BLOCK=8)
