# a tile of rows is transposed after each round: from the second round on, which another grid has, its elements meet
# expect: ok
# any-grid: races
# grid: 1
import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, BLOCK: tl.constexpr):
    rows = tl.arange(0, BLOCK)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    row = rows + tl.zeros((BLOCK, BLOCK), tl.int32)
    rounds = tl.num_programs(0)
    for i in range(rounds):
        tl.store(x + ((tl.program_id(0) * rounds + i) * BLOCK + row) * BLOCK + columns, i)
        row = tl.trans(row)


def arguments():
    return dict(x=torch.zeros(1024, dtype=torch.int32), BLOCK=8)
