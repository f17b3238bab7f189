"""Small kernels whose programs hand data to each other; every synchronisation can be left out."""

import triton
import triton.language as tl


@triton.jit
def message(data, flag, out, REL: tl.constexpr, ACQ: tl.constexpr, SCOPE: tl.constexpr, FENCE: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p == 0:
        tl.store(data + lane, lane)
        if FENCE:
            tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem=REL, scope=SCOPE)
    else:
        while tl.atomic_add(flag, 0, sem=ACQ) != 1:
            pass
        tl.store(out + p * 128 + lane, tl.load(data + lane))


@triton.jit
def lock(acc, held, x, TAKE: tl.constexpr, GIVE: tl.constexpr, FENCE: tl.constexpr, NARROW: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    v = tl.load(x + p * 128 + lane)
    while tl.atomic_cas(held, 0, 1, sem=TAKE) == 1:
        pass
    tl.store(acc + lane, tl.load(acc + lane) + v)
    if FENCE:
        tl.debug_barrier()
    tl.atomic_xchg(held, 0 if NARROW else p * 0, sem=GIVE)


@triton.jit
def last_block(part, count, out, SEM: tl.constexpr, FENCE: tl.constexpr, EARLY: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    tl.store(part + p * 128 + lane, lane)
    if FENCE:
        tl.debug_barrier()
    if tl.atomic_add(count, 1, sem=SEM) == n - 1 - EARLY:
        total = lane * 0
        for k in range(n):
            total += tl.load(part + k * 128 + lane)
        tl.store(out + lane, total)


@triton.jit
def store_buffering(flags, out, SEM: tl.constexpr):
    p = tl.program_id(0)
    tl.atomic_xchg(flags + p, 1, sem=SEM)
    if tl.atomic_add(flags + 1 - p, 0, sem=SEM) == 0:
        tl.store(out, p)


@triton.jit
def load_buffering(flags, out, READ: tl.constexpr, WRITE: tl.constexpr):
    p = tl.program_id(0)
    seen = tl.atomic_add(flags + p, 0, sem=READ)
    tl.atomic_xchg(flags + 1 - p, 1, sem=WRITE)
    if seen == 1:
        tl.store(out, p)


@triton.jit
def forwarded(data, flag, out, SEM: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p == 0:
        tl.store(data + lane, lane)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    elif p == 1:
        while tl.atomic_add(flag, 0, sem=SEM) != 1:
            pass
        tl.atomic_xchg(flag + 1, 1, sem="release")
    else:
        while tl.atomic_add(flag + 1, 0, sem="acquire") != 1:
            pass
        tl.store(out + lane, tl.load(data + lane))


@triton.jit
def never_set(data, flag):
    if tl.program_id(0) == 0:
        while tl.atomic_add(flag, 0, sem="acquire") != 1:
            pass
    tl.store(data + tl.program_id(0), 1)


@triton.jit
def never_given_back(data, lock, SEM: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1, sem=SEM) == 1:
        pass
    tl.store(data, 1)


@triton.jit
def counted_by_bytes(data, head, STEP: tl.constexpr):
    t = tl.atomic_add(head, 1, sem="relaxed")
    places = data + t * 256 + STEP * tl.arange(0, 32)
    tl.atomic_add(places.to(tl.pointer_type(tl.int32)), 1)


@triton.jit
def tickets(head, out, STEP: tl.constexpr, WIDTH: tl.constexpr):
    t = tl.atomic_add(head, STEP, sem="relaxed")
    tl.store(out + t + tl.arange(0, WIDTH), 1)


@triton.jit
def accumulated(acc, locks, x, GROUPS: tl.constexpr, DECIDED: tl.constexpr, DONE: tl.constexpr):
    """Partial sums of groups of rows: the first of a group stores, the others add, one at a time."""
    row = tl.program_id(0)
    lane = tl.arange(0, 128)
    lock = locks + row % GROUPS
    count = lock + GROUPS
    mine = acc + (row % GROUPS) * 128 + lane
    part = tl.load(x + row * 128 + lane)
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    seen = tl.load(count)
    if DECIDED:
        tl.debug_barrier()
    if seen == 0:
        tl.atomic_xchg(count, 1)
    else:
        part += tl.load(mine)
    tl.store(mine, part)
    if DONE:
        tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def cells_and_locks(acc, locks, CELLS: tl.constexpr, LOCKS: tl.constexpr, FENCE: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    held = locks + p % LOCKS
    cell = acc + (p % CELLS) * 128 + lane
    while tl.atomic_cas(held, 0, 1, sem="acquire") == 1:
        pass
    tl.store(cell, tl.load(cell) + 1)
    if FENCE:
        tl.debug_barrier()
    tl.atomic_xchg(held, 0, sem="release")


@triton.jit
def counted_under_lock(acc, held, used, FENCE: tl.constexpr, TOLD: tl.constexpr):
    lane = tl.arange(0, 256)
    v = lane
    while tl.atomic_cas(held, 0, 1) == 1:
        pass
    before = tl.load(used)
    if TOLD:
        tl.debug_barrier()
    if before == 0:
        tl.atomic_xchg(used, 1)
    else:
        v += tl.load(acc + lane)
    tl.store(acc + lane, v)
    if FENCE:
        tl.debug_barrier()
    tl.atomic_xchg(held, 0)


@triton.jit
def handed_round(rows, count, ROUNDS: tl.constexpr, WIDTH: tl.constexpr, FENCE: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    for t in range(1, ROUNDS):
        total = tl.sum(tl.load(rows + (t - 1) * 128 + lane))
        tl.store(rows + t * 128 + p * WIDTH + tl.arange(0, WIDTH), total)
        if FENCE:
            tl.debug_barrier()
        tl.atomic_add(count, 1, sem="release")
        while tl.atomic_add(count, 0, sem="acquire") < t * n:
            pass
