"""Small kernels for the symbolic reading: loops, carried values, masks, divisions, tiles, branches."""

import triton
import triton.language as tl


@triton.jit
def add(x, o, n, STEP: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(o + i, tl.load(x + i, mask=i < n), mask=i < n)


@triton.jit
def walk(x, o, n, PITCH: tl.constexpr, HOP: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 16)
    px, po = x + p * PITCH + lane, o + p * PITCH + lane
    left = n
    for _ in range(0, n, 16):
        v = tl.load(px, mask=lane < left)
        tl.store(po, v, mask=lane < left)
        px += 16
        po += HOP
        left -= 16


@triton.jit
def backwards(o, n, S: tl.constexpr):
    p = tl.program_id(0)
    for k in range(n, 0, -2):
        tl.store(o + p * S + k + tl.arange(0, 2), k)


@triton.jit
def nested(o, rows, cols, PITCH: tl.constexpr):
    p = tl.program_id(0)
    cell = o + p * PITCH
    for r in range(rows):
        for c in range(cols):
            tl.store(cell, r + c)
            cell += 1
        for c in range(r, cols):
            tl.store(o + p * PITCH + 20 + r * 5 + c, c)


@triton.jit
def swizzle(o, m, n, GROUP: tl.constexpr):
    p = tl.program_id(0)
    width = GROUP * n
    group = p // width
    first = group * GROUP
    size = min(m - first, GROUP)
    pm = first + (p % width) % size
    pn = (p % width) // size
    tl.store(o + pm * n + pn, p)


@triton.jit
def tile(o, n, PITCH: tl.constexpr, TRANS: tl.constexpr):
    p = tl.program_id(0)
    q = tl.program_id(1)
    r = p * 8 + tl.arange(0, 8)
    c = q * 4 + tl.arange(0, 4)
    address = o + r[:, None] * PITCH + c[None, :]
    mask = (r[:, None] < n) & (c[None, :] < n)
    if TRANS:
        address, mask = tl.trans(address), tl.trans(mask)
    tl.store(address, 1, mask=mask)


@triton.jit
def bits(o, C: tl.constexpr, D: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 32)
    tl.store(o + p * 64 + ((lane ^ C) & D) + (lane >> 3), 1)


@triton.jit
def turns(o, n, FIRST: tl.constexpr):
    at = o + tl.program_id(0) * 400 + tl.arange(0, 16)
    a, b, c, last = FIRST, 40, 90, 130
    for k in range(n):
        tl.store(at + a + k, k)
        tl.store(at + last + 100, k)
        last = a
        a, b, c = b, c, a


@triton.jit
def shifts(o, LOG: tl.constexpr):
    lane = tl.arange(0, 16)
    for s in range(LOG):
        signed = lane - 8
        place = (lane ^ (1 << s)) + (signed << s) + (signed >> s) + (signed.to(tl.uint32) >> (s + 16)).to(tl.int32)
        tl.store(o + tl.program_id(0) * 400 + 128 + place, 1)


@triton.jit
def grid_stride(o, n, BLOCK: tl.constexpr, ALL: tl.constexpr):
    at = tl.program_id(0) * BLOCK
    while at < n:
        i = at + tl.arange(0, BLOCK)
        tl.store(o + i, 1, mask=i < n)
        if ALL:
            at += BLOCK * tl.num_programs(0)
        else:
            at += BLOCK


@triton.jit
def persistent(o, n, BLOCK: tl.constexpr):
    for t in range(tl.program_id(0), n, tl.num_programs(0)):
        tl.store(o + t * BLOCK + tl.arange(0, BLOCK), t)


@triton.jit
def branch(o, n, ODD: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 16)
    if p % 2 == 0:
        at = p * 16
    else:
        at = n - (p + ODD) * 16
    tl.store(o + at + lane, p)


@triton.jit
def after_loop(o, n, S: tl.constexpr):
    p = tl.program_id(0)
    at = p * S
    for k in range(n):
        tl.store(o + at, k)
        at += 3
    tl.store(o + at + tl.arange(0, 4), 1)


@triton.jit
def scatter(index, o):
    p = tl.program_id(0)
    lane = tl.arange(0, 16)
    i = tl.load(index + p * 16 + lane)
    tl.store(o + i, lane)


@triton.jit
def in_place(x, SHIFT: tl.constexpr, FENCE: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    v = tl.load(x + p * 256 + lane + SHIFT)
    if FENCE:
        tl.debug_barrier()
    tl.store(x + p * 256 + lane, v)


@triton.jit
def exchange(x, o, n, FRONT: tl.constexpr, BACK: tl.constexpr, BUFFERS: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    for k in range(n):
        slot = x + p * 256 + (k % BUFFERS) * 128
        tl.store(slot + lane, k)
        if FRONT:
            tl.debug_barrier()
        v = tl.load(slot + 127 - lane)
        tl.store(o + (p * n + k) * 128 + lane, v)
        if BACK:
            tl.debug_barrier()


@triton.jit
def wraps(o, BIG: tl.constexpr):
    p = tl.program_id(0)
    tl.store(o + ((p * BIG) // BIG) % 3, p)


@triton.jit
def early(x, o, n, FENCE: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    tl.store(x + p * 128 + lane, 1)
    if p >= n:
        return
    if FENCE:
        tl.debug_barrier()
    v = tl.load(x + p * 128 + 127 - lane)
    tl.store(o + p * 128 + lane, v)


@triton.jit
def masked_scatter(index, o, n, ALL: tl.constexpr):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    at = tl.load(index + i, mask=i < n, other=3)
    tl.store(o + at, i, mask=(i < n) | ALL)


@triton.jit
def ranged(starts, o):
    p = tl.program_id(0)
    first, last = tl.load(starts + p), tl.load(starts + p + 1)
    for k in range(first, last):
        tl.store(o + k, p)


@triton.jit
def tickets(head, o, STEP: tl.constexpr, WIDTH: tl.constexpr, SCOPE: tl.constexpr, OTHER: tl.constexpr):
    t = tl.atomic_add(head, STEP, sem="relaxed", scope=SCOPE)
    tl.store(o + t * WIDTH + tl.arange(0, 4), t)
    if OTHER == "reset":
        tl.atomic_xchg(head, 0)
    if OTHER == "read":
        tl.store(o + 4000 + tl.program_id(0), tl.atomic_add(o + 5000, 0))


@triton.jit
def queue(head, o, total, STEP: tl.constexpr):
    t = tl.atomic_add(head, STEP, sem="relaxed")
    while t < total:
        tl.store(o + t * 4 + tl.arange(0, 4), t)
        t = tl.atomic_add(head, STEP, sem="relaxed")


@triton.jit
def first(flag, o, OLD: tl.constexpr, NEW: tl.constexpr, WANTED: tl.constexpr):
    if tl.atomic_cas(flag, OLD, NEW, sem="relaxed") == WANTED:
        tl.store(o, 1)


@triton.jit
def masked_ticket(head, o):
    p = tl.program_id(0)
    t = tl.atomic_add(head, 1, mask=p > 0, sem="relaxed")
    tl.store(o + t, p)


@triton.jit
def last_block(part, count, out, SEM: tl.constexpr, FENCE: tl.constexpr, EARLY: tl.constexpr, TWICE: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    tl.store(part + p * 128 + lane, lane)
    if FENCE:
        tl.debug_barrier()
    if TWICE:
        tl.atomic_add(count, 1, sem=SEM)
    if tl.atomic_add(count, 1, sem=SEM) == n - 1 - EARLY:
        total = lane * 0
        for k in range(n):
            total += tl.load(part + k * 128 + lane)
        tl.store(out + lane, total)


@triton.jit
def gathered(x, SHIFT: tl.constexpr):
    lane = tl.arange(0, 32)
    v = tl.load(x + tl.program_id(0) * 32 + lane)
    if SHIFT:
        v = tl.gather(v, (lane + 1) % 32, axis=0)
    tl.store(x + tl.program_id(0) * 32 + lane, v)


@triton.jit
def two_tables(a, b, o):
    p = tl.program_id(0)
    tl.store(o + p + tl.load(a + p) - tl.load(b + p), p)


@triton.jit
def strays(o, FAR: tl.constexpr):
    tl.store(o + FAR + tl.program_id(0), 1)


@triton.jit
def rows(o, n, ROUND: tl.constexpr, BLOCK: tl.constexpr):
    """Rows of a length known at run time; with ROUND the mask lets each reach into the next."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n + 1 if ROUND else lanes < n
    tl.store(o + tl.program_id(0) * n + lanes, lanes, mask=mask)


@triton.jit
def planes(o, n, m, SWAP: tl.constexpr, BLOCK: tl.constexpr):
    """Cells of planes of n rows of m; programs along one axis are split into plane and row."""
    plane, row = tl.program_id(0) // n, tl.program_id(0) % n
    if SWAP:
        plane, row = row, plane
    lanes = tl.arange(0, BLOCK)
    tl.store(o + (plane * n + row) * m + lanes, lanes, mask=lanes < m)


@triton.jit
def chunks(table, starts, o, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    """Each program fills one chunk of one sequence; both are looked up."""
    sequence = tl.load(table + 2 * tl.program_id(0)).to(tl.int32)
    chunk = tl.load(table + 2 * tl.program_id(0) + 1).to(tl.int32)
    first, last = tl.load(starts + sequence).to(tl.int32), tl.load(starts + sequence + 1).to(tl.int32)
    lanes = chunk * BLOCK + tl.arange(0, WIDTH)
    tl.store(o + first + lanes, lanes, mask=lanes < last - first)


@triton.jit
def turned(o, n, BLOCK: tl.constexpr):
    """A tile of rows that is transposed after each round: from the second on, its elements meet."""
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    row = rows + tl.zeros((BLOCK, BLOCK), tl.int32)
    for i in range(n):
        tl.store(o + ((tl.program_id(0) * n + i) * BLOCK + row) * BLOCK + columns, i)
        row = tl.trans(row)


@triton.jit
def laid_along(o, n, BLOCK: tl.constexpr):
    """A tile over the rows that a row takes the place of, so that from the second round on all rows are one."""
    rows, columns = tl.arange(0, BLOCK)[:, None], tl.arange(0, BLOCK)[None, :]
    row = rows + tl.zeros((BLOCK, BLOCK), tl.int32)
    line = tl.arange(0, BLOCK)
    for i in range(n):
        tl.store(o + ((tl.program_id(0) * n + i) * BLOCK + row) * BLOCK + columns, i)
        row = line[None, :] + tl.zeros((BLOCK, BLOCK), tl.int32)
        line += BLOCK * BLOCK


@triton.jit
def handed_on(o, n, HOW: tl.constexpr):
    """What is computed in one round, and wraps far beyond the launch, is where a later round stores."""
    p = tl.program_id(0)
    if p < 3000:
        far = (p * 2097152) // 131072  # 16 * p, unless it wraps
        x = p * 16
        y = far
        for i in range(n):
            if HOW == "by turns":
                if i % 2 == 1:
                    tl.store(o + x, 1)
                x, y = y, x
            elif HOW == "counted on":
                if i == 1:
                    tl.store(o + x, 1)
                x = y
                y += 3
            elif HOW == "in the first round":
                if i > 0:
                    tl.store(o + x, 1)
                if i == 0:
                    x = (p * 2097152) // 131072
                else:
                    x = p * 16
            elif i + 1 == n:
                x = (p * 2097152) // 131072
            else:
                x = p * 16
        if HOW == "in the last round":
            tl.store(o + x, 1)
