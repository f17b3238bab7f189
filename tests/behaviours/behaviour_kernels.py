"""Small kernels, one for each behaviour. `# R1` and `# R2` mark the lines a race must name."""

import triton
import triton.language as tl

# ---- one race of each kind -------------------------------------------------------------------------------------------


@triton.jit
def write_write(o, STEP: tl.constexpr):
    tl.store(o + tl.program_id(0) * STEP + tl.arange(0, 16), 1)  # R1 R2


@triton.jit
def write_read(x, o):
    p = tl.program_id(0)
    tl.store(x + p, p)  # R1
    tl.debug_barrier()
    v = tl.load(x + (p + 7) % 8)  # R2
    tl.store(o + p, v)


@triton.jit
def read_write(x, o):
    p = tl.program_id(0)
    v = tl.load(x + (p + 1) % 8)  # R1
    tl.store(o + p, v)
    tl.debug_barrier()
    tl.store(x + p, p)  # R2


@triton.jit
def atomic_and_load(count, o):
    p = tl.program_id(0)
    v = tl.load(count)  # R1
    tl.store(o + p, v)
    tl.debug_barrier()
    tl.atomic_add(count, 1, sem="relaxed")  # R2


# ---- scopes ----------------------------------------------------------------------------------------------------------


@triton.jit
def two_buffers(x, y, STEP: tl.constexpr):
    i = tl.program_id(0) * STEP + tl.arange(0, 16)
    tl.store(y + i, tl.load(x + i))  # R1


@triton.jit
def parity(o):
    """Programs 0 and 2 meet."""
    tl.store(o + tl.program_id(0) % 2, 1)  # R1 R2


@triton.jit
def row(o, pitch):
    tl.store(o + tl.program_id(0) * pitch + tl.arange(0, 16), 1)


@triton.jit
def wraps_back(o):
    """The product wraps for program 4, which then stores where program 0 does."""
    p = tl.program_id(0)
    tl.store(o + 2 + (p * 1073741824) // 1073741824, p)  # R1 R2


@triton.jit
def guarded_product(o):
    """From program 2 on the product is not used."""
    p = tl.program_id(0)
    tl.store(o + tl.where(p >= 2, 0, p * 1073741824 // 1073741824), p)  # R1 R2


@triton.jit
def wraps_in_branch(o, n, big):
    """The loop's bound wraps only for programs that do not reach it."""
    p = tl.program_id(0)
    if p < n:
        for k in range(p * big // big + 1):
            tl.store(o + p * 8 + k, k)


@triton.jit
def two_widths(o, near, far):
    """One product of 32 and one of 64 bits wrap, each for other programs."""
    p = tl.program_id(0)
    if p % 2 == 0:
        tl.store(o + p + (p * near) // near, 1)
    else:
        tl.store(o + p + (p.to(tl.int64) * far) // far, 1)


@triton.jit
def two_loops(o, n):
    """Two loops one after the other: the second continues where the first ended, or not."""
    p = tl.program_id(0)
    for k in range(4):
        tl.store(o + p * 8 + k, k)  # R1
    for k in range(n, n + 4):
        tl.store(o + p * 8 + k, k)  # R2


@triton.jit
def nested(o, INNER: tl.constexpr):
    p = tl.program_id(0)
    for a in range(3):
        for b in range(4):
            tl.store(o + p * 16 + a * INNER + b, b)  # R1


@triton.jit
def read_loop_then_in_place(x, y, INSIDE: tl.constexpr):
    """A loop that only reads, then an update in place after it or inside another loop."""
    at = tl.program_id(0) * 128 + tl.arange(0, 128)
    total = tl.zeros([128], dtype=tl.int32)
    for k in range(4):
        total += tl.load(y + k * 128 + tl.arange(0, 128))
    if INSIDE:
        for j in range(2):
            v = tl.load(x + at * 2 + j)
            tl.store(x + at * 2 + j, v + total)
    else:
        v = tl.load(x + at)
        tl.store(x + at, v + total)


# ---- tensor contents -------------------------------------------------------------------------------------------------


@triton.jit
def masked_by_flag(x, keep):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(x + i, 1, mask=tl.load(keep + i) != 0)


@triton.jit
def meeting_unless_masked(x, keep):
    """All programs store to one tile, those whose flag is set."""
    p = tl.program_id(0)
    tl.store(x + tl.arange(0, 16), p, mask=tl.load(keep + p) != 0)  # R1 R2


@triton.jit
def scatter(index, o):
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(o + tl.load(index + i), i)  # R1 R2


@triton.jit
def scatter_and_note(index, o):
    """Each program writes over its part of the table in the end."""
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    at = tl.load(index + i)
    tl.store(o + at, i)
    tl.debug_barrier()
    tl.store(index + i, i)


@triton.jit
def parity_and_unknown(o, x, keep):
    """Programs 0 and 2 meet, and it is not known who stores to `x`."""
    p = tl.program_id(0)
    tl.store(o + p % 2, 1)
    tl.store(x, p, mask=tl.load(keep + p) != 0)


@triton.jit
def masked_other(index, o):
    """Lanes past the table read `other`, where every program meets."""
    p = tl.program_id(0)
    i = p * 16 + tl.arange(0, 16)
    at = tl.load(index + i, mask=i < p * 16 + 15, other=0)
    tl.store(o + at, i)  # R1 R2


@triton.jit
def unsigned_index(index, o):
    p = tl.program_id(0)
    tl.store(o + tl.load(index + p).to(tl.int32), p)


@triton.jit
def scatter_rounded(index, o):
    """Places computed from numbers with a fraction."""
    i = tl.program_id(0) * 16 + tl.arange(0, 16)
    tl.store(o + tl.load(index + i).to(tl.int32), i)


@triton.jit
def halves(index, o):
    """The lower half of each number of the table is a place."""
    p = tl.program_id(0)
    lower = index.to(tl.pointer_type(tl.int16), bitcast=True)
    tl.store(o + tl.load(lower + 2 * p).to(tl.int32), p)  # R1 R2


# ---- barriers --------------------------------------------------------------------------------------------------------


@triton.jit
def reversed_tile(x, o, FENCE: tl.constexpr, ONLY: tl.constexpr):
    """What other lanes stored is loaded after a barrier: of all programs, of none, of one."""
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    tl.store(x + p * 128 + lane, lane)  # R1
    if FENCE:
        if ONLY:
            if p == 0:
                tl.debug_barrier()
        else:
            tl.debug_barrier()
    v = tl.load(x + p * 128 + 127 - lane)  # R2
    tl.store(o + p * 128 + lane, v)


@triton.jit
def loop_of_barriers(x, o, FRONT: tl.constexpr, BACK: tl.constexpr):
    """One buffer, stored and loaded again in each round."""
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    for k in range(3):
        tl.store(x + p * 128 + lane, k)  # R2
        if FRONT:
            tl.debug_barrier()
        v = tl.load(x + p * 128 + 127 - lane)  # R1
        tl.store(o + (p * 3 + k) * 128 + lane, v)
        if BACK:
            tl.debug_barrier()


# ---- dependence ------------------------------------------------------------------------------------------------------


@triton.jit
def in_place(x, SHIFT: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 32)
    v = tl.load(x + p * 64 + lane + SHIFT)  # R1
    tl.store(x + p * 64 + lane, v + 1)  # R2


@triton.jit
def through_atomic(x, cell, MASKED: tl.constexpr):
    """A load, an exchange of what it read, and a store of what the exchange found."""
    lane = tl.program_id(0) * 32 + tl.arange(0, 32)
    v = tl.load(x + lane)  # R1
    if MASKED:
        old = tl.atomic_xchg(cell + lane, v, mask=lane < 0, sem="relaxed")
    else:
        old = tl.atomic_xchg(cell + lane, v, sem="relaxed")
    tl.store(x + lane, old)  # R2


@triton.jit
def lanes_on_one_element(x, MANY: tl.constexpr, KEPT: tl.constexpr):
    """All lanes of a tile store different values to the program's element."""
    p = tl.program_id(0)
    lane = tl.arange(0, MANY)
    tl.store(x + p + tl.zeros([MANY], dtype=tl.int32), lane, mask=lane < KEPT)  # R1 R2


@triton.jit
def broadcast_row(x, FIRST: tl.constexpr):
    """A row of pointers for a whole square of values."""
    p = tl.program_id(0)
    line = x + p * 16 + tl.arange(0, 16)
    tile = tl.broadcast_to(line[None, :], (16, 16))
    rows = tl.arange(0, 16)[:, None]
    tl.store(tile, rows + tl.arange(0, 16)[None, :], mask=(rows < FIRST) & (tl.arange(0, 16)[None, :] >= 0))  # R1 R2


# ---- waiting ---------------------------------------------------------------------------------------------------------


@triton.jit
def handed_over(data, flag, o, WANTED: tl.constexpr, SEM: tl.constexpr, LOOK: tl.constexpr):
    """Program 0 stores, then sets the flag; the others wait for it, or go on without."""
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p == 0:
        tl.store(data + lane, lane)  # R1
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        if LOOK:
            while tl.atomic_add(flag, 0, sem=SEM) != WANTED:
                pass
        tl.store(o + p * 128 + lane, tl.load(data + lane))  # R2


@triton.jit
def handed_over_by_number(data, flag, o, big):
    """What a program waits for is 1, unless the product wraps: then it is what the flag held before."""
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p == 0:
        tl.store(data + lane, lane)  # R1
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    else:
        while tl.atomic_add(flag, 0, sem="acquire") != (p * big) // big // p:
            pass
        tl.store(o + p * 128 + lane, tl.load(data + lane))  # R2


@triton.jit
def reset_meanwhile(flag, o, RESET: tl.constexpr):
    """While program 1 polls, program 2 does something else to the flag it polls."""
    p = tl.program_id(0)
    if p == 0:
        tl.atomic_xchg(flag, 1, sem="release")
    if p == 1:
        while tl.atomic_add(flag, 0, sem="acquire") != 1:  # R1
            pass
    if p == 2:
        if RESET == "block":
            tl.atomic_xchg(flag, 1, sem="relaxed", scope="cta")  # R2
        if RESET == "device":
            tl.atomic_xchg(flag, 1, sem="relaxed")
        if RESET == "read":
            tl.store(o, tl.load(flag))  # R3


@triton.jit
def counting(x, n):
    """A loop that counts is no waiting loop."""
    k = 0
    while k < n:
        tl.store(x + tl.program_id(0) * 8 + k, k)
        k += 1


# ---- swaps -----------------------------------------------------------------------------------------------------------


@triton.jit
def spin_lock(x, lock, GIVE: tl.constexpr):
    lane = tl.arange(0, 128)
    while tl.atomic_cas(lock, 0, 1, sem="acquire") != 0:
        pass
    tl.store(x + lane, tl.load(x + lane) + 1)  # R1
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0, sem=GIVE)


@triton.jit
def swapped_over(data, flag, o, OUT: tl.constexpr, IN: tl.constexpr):
    """Program 0 publishes by a swap, program 1 looks by another: once, and reads only if it found the new value."""
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p == 0:
        tl.store(data + lane, lane)  # R1
        tl.debug_barrier()
        tl.atomic_cas(flag, 0, 1, sem=OUT)
    else:
        if tl.atomic_cas(flag, 1, 1, sem=IN) == 1:
            tl.debug_barrier()
            tl.store(o + p * 128 + lane, tl.load(data + lane))  # R2


@triton.jit
def swap_of(flag, x, KIND: tl.constexpr, n):
    """Only the program whose swap succeeds stores."""
    p = tl.program_id(0)
    if KIND == "comparison":
        won = tl.atomic_cas(flag, 0, (p >= 0).to(tl.int32), sem="relaxed") == 0
    elif KIND == "arithmetic":
        won = tl.atomic_cas(flag, 0, p + 1, sem="relaxed") == 0
    elif KIND == "narrowed":
        won = tl.atomic_cas(flag, 0, (p + 256).to(tl.int8).to(tl.int32), sem="relaxed") == 0
    else:
        won = tl.atomic_cas(flag, 0, n, sem="relaxed") == 0
    if won:
        tl.store(x, p)  # R1 R2


@triton.jit
def swaps_in_a_loop(flag, x, TRIES: tl.constexpr):
    p = tl.program_id(0)
    for k in range(TRIES):
        if tl.atomic_cas(flag + k, 0, 1, sem="relaxed") == 0:
            tl.store(x + k, p)


@triton.jit
def computes_beside_communication(data, sums, ready, o, ACQUIRE: tl.constexpr):
    """Even programs copy a tile and set its flag; odd ones wait for it and work on it."""
    p = tl.program_id(0)
    tile = p // 2
    lane = tl.arange(0, 128)
    if p % 2 == 0:
        tl.store(sums + tile * 128 + lane, tl.load(data + tile * 128 + lane))  # R1
        tl.debug_barrier()
        tl.atomic_xchg(ready + tile, 1, sem="release")
    else:
        while tl.atomic_cas(ready + tile, 1, 1, sem=ACQUIRE) != 1:
            pass
        tl.store(o + tile * 128 + lane, tl.load(sums + tile * 128 + lane) * 2)  # R2


@triton.jit
def returns_early(x, o, n, FENCE: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    tl.store(x + p * 128 + lane, lane)  # R1
    if p >= n:
        return
    if FENCE:
        tl.debug_barrier()
    tl.store(o + p * 128 + lane, tl.load(x + p * 128 + 127 - lane))  # R2
