"""Racy kernels, one for each cause a hint can name, and twins that must not be told the same."""

import triton
import triton.language as tl


@triton.jit
def no_mask(x, out, columns, BLOCK: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * columns + lanes, tl.load(x + row * columns + lanes, mask=lanes < columns))


@triton.jit
def mask_too_wide(x, out, columns, n, BLOCK: tl.constexpr):
    row, lanes = tl.program_id(0), tl.arange(0, BLOCK)
    tl.store(out + row * columns + lanes, 1.0, mask=row * columns + lanes < n)


@triton.jit
def stride_below_block(out, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(out + lanes, 1.0, mask=lanes < n)


@triton.jit
def update_below_block(x, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * (BLOCK // 2) + tl.arange(0, BLOCK)
    tl.store(x + lanes, tl.load(x + lanes, mask=lanes < n) + tl.load(x + lanes + 1, mask=lanes < n), mask=lanes < n)


@triton.jit
def columns_overlap(out, ld, BLOCK: tl.constexpr):
    rows, columns = tl.arange(0, 4), tl.program_id(1) * 8 + tl.arange(0, BLOCK)
    tl.store(out + rows[:, None] * ld + columns[None, :], 1.0, mask=columns[None, :] < ld)


@triton.jit
def no_program_id(out, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK), 1.0)


@triton.jit
def load_add_store(x, total, BLOCK: tl.constexpr):
    added = tl.sum(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.store(total, tl.load(total) + added)


@triton.jit
def load_max_store(x, total, BLOCK: tl.constexpr):
    most = tl.max(tl.load(x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)), 0)
    tl.store(total, tl.maximum(tl.load(total), most))


@triton.jit
def publish(data, flag, out, GIVE: tl.constexpr, TAKE: tl.constexpr, FENCE: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    if tl.program_id(0) == 0:
        tl.store(data + lanes, lanes)
        if FENCE:
            tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem=GIVE)
    else:
        while tl.atomic_cas(flag, 1, 1, sem=TAKE) == 0:
            pass
        tl.store(out + lanes, tl.load(data + lanes))


@triton.jit
def scatter(index, out, BLOCK: tl.constexpr):
    places = tl.load(index + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK))
    tl.store(out + places, 1.0)


@triton.jit
def shift(a, b, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(b + lanes, tl.load(a + lanes + BLOCK))


@triton.jit
def reversed_in_place(x, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(x + BLOCK - 1 - lanes, tl.load(x + lanes))


@triton.jit
def lanes_meet(out, BLOCK: tl.constexpr):
    tl.store(out + tl.arange(0, BLOCK) // 2, 1.0)


@triton.jit
def narrow(counts):
    tl.atomic_add(counts, 1, scope="cta")


@triton.jit
def cleared_and_counted(counts):
    if tl.program_id(0) == 0:
        tl.store(counts, 0)
    tl.atomic_add(counts, 1)


@triton.jit
def walks_on(out, BLOCK: tl.constexpr):
    for step in range(3):
        tl.store(out + tl.program_id(0) * 2 * BLOCK + step * BLOCK + tl.arange(0, BLOCK), 1.0)


@triton.jit
def two_a_row(out, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0) // 2 * BLOCK + tl.arange(0, BLOCK), 1.0)


@triton.jit
def round_robin(out, rows, STEP: tl.constexpr, BLOCK: tl.constexpr):
    for row in range(tl.program_id(0), rows, STEP):
        tl.store(out + row * BLOCK + tl.arange(0, BLOCK), 1.0)


@triton.jit
def both_halves(q, k, stride, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * stride + tl.arange(0, BLOCK)
    tl.store(q + lanes, 1.0)
    tl.store(k + lanes, 2.0)


@triton.jit
def counted_if_new(count):
    if tl.load(count + tl.program_id(0)) == 0:
        tl.atomic_add(count + tl.program_id(0), 1)


@triton.jit
def cleared_and_scattered(counts, places, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(counts + lanes, 0)
    tl.atomic_add(counts + tl.load(places + lanes), 1)


@triton.jit
def waits_plainly(flags, out, BLOCK: tl.constexpr):
    p = tl.program_id(0)
    seen = 1
    if p > 0:
        seen = tl.load(flags + p - 1, volatile=True)
        while seen == 0:
            seen = tl.load(flags + p - 1, volatile=True)
    tl.store(flags + p, seen)
    tl.store(out + p * BLOCK + tl.arange(0, BLOCK), seen)


@triton.jit
def walks_a_list(following, out):
    p = tl.program_id(0)
    node = p + 1
    length = 0
    while node < 4:
        node = tl.load(following + node)
        length += 1
    tl.store(following + p, 4)
    tl.store(out + p, length)


@triton.jit
def heads_by_two(x, BLOCK: tl.constexpr):
    at = x + (tl.program_id(0) // 2) * BLOCK + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) * 2 + 1)


@triton.jit
def row_in_place(x, BLOCK: tl.constexpr):
    at = x + tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(at, tl.load(at) * 2 + 1)


@triton.jit
def counted_by_hand(index, x, LOADED: tl.constexpr, STORED: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    at = x + tl.load(index + lanes)
    tl.store(at, tl.load(at, mask=lanes < LOADED) + 1, mask=lanes < STORED)
