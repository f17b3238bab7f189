"""Kernels whose programs wait for each other, on any grid; every synchronisation can be left out or got wrong."""

import triton
import triton.language as tl


@triton.jit
def handed_over(data, flag, out, REL: tl.constexpr, ACQ: tl.constexpr, SCOPE: tl.constexpr, FENCE: tl.constexpr,
                OTHER: tl.constexpr, WANTED: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p == 0:
        tl.store(data + lane, lane)
        if FENCE:
            tl.debug_barrier()
        tl.atomic_xchg(flag + OTHER, 1, sem=REL, scope=SCOPE)
    else:
        while tl.atomic_add(flag, 0, sem=ACQ) != WANTED:
            pass
        tl.store(out + p * 128 + lane, tl.load(data + lane))


@triton.jit
def one_after_another(x, flags, ACQ: tl.constexpr, REL: tl.constexpr, FENCE: tl.constexpr, BACK: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p >= BACK:
        while tl.atomic_add(flags + p - BACK, 0, sem=ACQ) != 1:
            pass
    tl.store(x + lane, tl.load(x + lane) + p)
    if FENCE:
        tl.debug_barrier()
    tl.atomic_xchg(flags + p, 1, sem=REL)


@triton.jit
def all_wait(x, y, count, IN: tl.constexpr, WAIT: tl.constexpr, FENCE: tl.constexpr, LESS: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    tl.store(x + p * 128 + lane, lane)
    if FENCE:
        tl.debug_barrier()
    tl.atomic_add(count, 1, sem=IN)
    while tl.atomic_add(count, 0, sem=WAIT) < n - LESS:
        pass
    tl.store(y + p * 128 + lane, tl.load(x + ((p + 1) % n) * 128 + lane))


@triton.jit
def one_waits_for_all(x, y, count, LESS: tl.constexpr, FIRST: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    if p != FIRST:
        tl.store(x + p * 128 + lane, lane)
        tl.debug_barrier()
        tl.atomic_add(count, 1, sem="release")
    else:
        while tl.atomic_add(count, 0, sem="acquire") < n - LESS:
            pass
        for k in range(n):
            tl.store(y + k * 128 + lane, tl.load(x + k * 128 + lane))


@triton.jit
def locked(acc, lock, TAKE: tl.constexpr, GIVE: tl.constexpr, FENCE: tl.constexpr, FREE: tl.constexpr,
           LOCKS: tl.constexpr, CELLS: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    mine = lock + p % LOCKS
    cell = acc + (p % CELLS) * 128 + lane
    if FREE:
        while tl.atomic_cas(mine, 0, 1, sem=TAKE) != 0:
            pass
    else:
        while tl.atomic_cas(mine, 0, 1, sem=TAKE) == 1:
            pass
    tl.store(cell, tl.load(cell) + p)
    if FENCE:
        tl.debug_barrier()
    tl.atomic_xchg(mine, 0, sem=GIVE)


@triton.jit
def locked_twice(acc, lock, AGAIN: tl.constexpr, LATE: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    for _ in range(2):
        while tl.atomic_cas(lock, 0, 1, sem="acquire") != 0:
            pass
        tl.store(acc + lane, tl.load(acc + lane) + p)
        tl.debug_barrier()
        tl.atomic_xchg(lock, 0, sem="release")
        if AGAIN:
            tl.atomic_xchg(lock, 0, sem="release")
        if LATE:
            tl.store(acc + lane, p)


@triton.jit
def in_turn(acc, turn, WAIT: tl.constexpr, NEXT: tl.constexpr, FENCE: tl.constexpr, STEP: tl.constexpr,
            SHARE: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    mine = p // SHARE
    while tl.atomic_add(turn, 0, sem=WAIT) != mine:
        pass
    tl.store(acc + lane, tl.load(acc + lane) + p)
    if FENCE:
        tl.debug_barrier()
    tl.atomic_xchg(turn, mine + STEP, sem=NEXT)


@triton.jit
def in_turn_to_the_last(acc, first, turn, EARLY: tl.constexpr, LEFT: tl.constexpr, WATCH: tl.constexpr,
                        LOOK: tl.constexpr, HOW: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    last = tl.num_programs(0) - WATCH - 1
    if p <= last:
        while tl.atomic_add(turn, 0, sem="acquire") != p:
            pass
        tl.store(acc + lane, tl.load(acc + lane) + p)
        if p == 0:
            tl.store(first + lane, lane)
        tl.debug_barrier()
        if HOW == "where":
            tl.atomic_xchg(turn, tl.where(p == last - EARLY, LEFT, p + 1), sem="release")
        elif HOW == "swap":
            tl.atomic_cas(turn, p, tl.where(p == last - EARLY, LEFT, p + 1), sem="release")
        elif HOW == "swap another":
            tl.atomic_cas(turn, p + (p > 0), tl.where(p == last - EARLY, LEFT, p + 1), sem="release")
        elif p == last - EARLY:
            tl.atomic_xchg(turn, LEFT, sem="release")
        else:
            tl.atomic_xchg(turn, p + 1, sem="relaxed" if HOW == "relaxed branch" else "release")
    elif tl.atomic_add(turn, 0, sem=LOOK) > 0:
        tl.store(acc + 128 + lane, tl.load(first + lane))


@triton.jit
def told_by_the_one_before(data, turn, out, SHARE: tl.constexpr, TWICE: tl.constexpr):
    p = tl.program_id(0)
    mine = p // SHARE
    while tl.atomic_add(turn, 0, sem="acquire") != mine:
        pass
    if mine > 0:
        tl.store(out + p, tl.load(data + (mine - 1) * SHARE + SHARE - 1))
    if TWICE:
        tl.atomic_xchg(turn, mine + 1, sem="release")
    tl.store(data + p, p)
    tl.atomic_xchg(turn, mine + 1, sem="release")


@triton.jit
def wrapped_turns(acc, turn, N: tl.constexpr, AFTER: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    cell = acc + p // N * 128 + lane
    mine = p % N
    while tl.atomic_add(turn + p // N, 0, sem="acquire") != mine:
        pass
    tl.store(cell, tl.load(cell) + p)
    tl.debug_barrier()
    tl.atomic_xchg(turn + p // N, (mine + 1) % AFTER, sem="release")


@triton.jit
def _goes_on(found, mine, watches):
    return (watches & (found < 0)) | (~watches & (found != mine))


@triton.jit
def in_turn_past_the_end(data, out, turn, STEP: tl.constexpr):
    p = tl.program_id(0)
    quarter = p % 4
    mine = tl.where(quarter < 2, quarter, quarter - 4) * STEP
    while _goes_on(tl.atomic_add(turn, 0, sem="acquire"), mine, p >= 4):
        pass
    if p < 4:
        if quarter == 2:
            tl.store(data, p)
        tl.debug_barrier()
        tl.atomic_add(turn, STEP, sem="release")
    else:
        tl.store(out + p, tl.load(data))


@triton.jit
def served(acc, head, serving, DRAW: tl.constexpr, NEXT: tl.constexpr, STEP: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    t = tl.atomic_add(head, DRAW, sem="relaxed")
    while tl.atomic_add(serving, 0, sem="acquire") != t:
        pass
    tl.store(acc + lane, tl.load(acc + lane) + p)
    tl.debug_barrier()
    tl.atomic_add(serving, STEP, sem=NEXT)


@triton.jit
def claimed(data, slot, out, NEW: tl.constexpr, FULL: tl.constexpr, REL: tl.constexpr, ACQ: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    old = tl.atomic_cas(slot, 0, NEW, sem="relaxed")
    if old == 0:
        tl.store(data + lane, lane)
        tl.debug_barrier()
        tl.atomic_xchg(slot, FULL, sem=REL)
    else:
        while tl.atomic_cas(slot, 2, 2, sem=ACQ) != 2:
            pass
        tl.store(out + p * 128 + lane, tl.load(data + lane))


@triton.jit
def passed_on(data, flag, out, SEM: tl.constexpr, REL: tl.constexpr):
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p == 0:
        tl.store(data + lane, lane)
        tl.debug_barrier()
        tl.atomic_xchg(flag, 1, sem="release")
    elif p == 1:
        while tl.atomic_add(flag, 0, sem=SEM) != 1:
            pass
        tl.atomic_xchg(flag + 1, 1, sem=REL)
    else:
        while tl.atomic_add(flag + 1, 0, sem="acquire") != 1:
            pass
        tl.store(out + p * 128 + lane, tl.load(data + lane))


@triton.jit
def looked_back(
    x, agg, inc, state, out, SEM: tl.constexpr, LOOK: tl.constexpr, FENCE: tl.constexpr, EARLY: tl.constexpr
):
    p = tl.program_id(0)
    mine = tl.load(x + p)
    tl.store(agg + p, mine)
    if FENCE:
        tl.debug_barrier()
    tl.atomic_xchg(state + p, 1, sem=SEM)
    before = 0
    j = p - 1
    while j >= 0:
        s = tl.atomic_add(state + j, 0, sem=LOOK)
        tl.debug_barrier()
        if s == 2 - EARLY:
            before += tl.load(inc + j)
            j = -1
        elif s == 1:
            before += tl.load(agg + j)
            j -= 1
    tl.store(inc + p, before + mine)
    tl.debug_barrier()
    tl.atomic_xchg(state + p, 2, sem=SEM)


@triton.jit
def last_of_a_tile(part, count, out, SEM: tl.constexpr, EARLY: tl.constexpr, SHARE: tl.constexpr):
    tile, k = tl.program_id(0), tl.program_id(1)
    n = tl.num_programs(1)
    lane = tl.arange(0, 128)
    tl.store(part + (tile * n + k) * 128 + lane, lane)
    tl.debug_barrier()
    if tl.atomic_add(count + tile // SHARE, 1, sem=SEM) == n - 1 - EARLY:
        total = lane * 0
        for j in range(n):
            total += tl.load(part + (tile * n + j) * 128 + lane)
        tl.store(out + tile * 128 + lane, total)


@triton.jit
def last_of_a_tile_resets(
    part,
    count,
    out,
    SEM: tl.constexpr,
    HOW: tl.constexpr,
    SOONER: tl.constexpr,
    NEXT: tl.constexpr,
    AGAIN: tl.constexpr,
):
    tile, k = tl.program_id(0), tl.program_id(1)
    n = tl.num_programs(1)
    lane = tl.arange(0, 128)
    tl.store(part + (tile * n + k) * 128 + lane, lane)
    tl.debug_barrier()
    drawn = tl.atomic_add(count + tile, 1, sem=SEM)
    if drawn == n - 1:
        total = lane * 0
        for j in range(n):
            total += tl.load(part + (tile * n + j) * 128 + lane)
        tl.store(out + tile * 128 + lane, total)
    if drawn >= n - 1 - SOONER:
        if HOW == "store":
            tl.store(count + tile + NEXT, 0)
        elif HOW == "xchg":
            tl.atomic_xchg(count + tile + NEXT, 0, sem="relaxed")
        else:
            tl.atomic_add(count + tile + NEXT, -n, sem="relaxed")
    if AGAIN and tl.atomic_add(count + tile, 0 if AGAIN == 1 else 1, sem=SEM) == n - 1:
        tl.store(out + tile * 128 + lane, lane)


@triton.jit
def queued(head, out, total, STEP: tl.constexpr, HALF: tl.constexpr):
    lane = tl.arange(0, 128)
    t = tl.atomic_add(head, 1, sem="relaxed")
    while t < total:
        tl.store(out + t // HALF * 128 + lane, t)
        t = tl.atomic_add(head, STEP, sem="relaxed")


@triton.jit
def counted_by_bytes(data, STEP: tl.constexpr):
    """Atomics whose scope is their own program, on elements that a program has to itself."""
    places = data + tl.program_id(0) * 256 + STEP * tl.arange(0, 32)
    tl.atomic_add(places.to(tl.pointer_type(tl.int32)), 1, scope="cta")


@triton.jit
def never_set(data, flag):
    lane = tl.arange(0, 128)
    while tl.atomic_add(flag, 0, sem="acquire") != 1:
        pass
    tl.store(data + lane, 1)


@triton.jit
def added_to(c, lock, PER: tl.constexpr, REL: tl.constexpr, SHIFT: tl.constexpr):
    """Several programs to a tile: the first stores it, the others wait and add."""
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    tile = p // PER
    if p % PER == 0:
        tl.store(c + tile * 128 + lane, lane)
        tl.debug_barrier()
        tl.atomic_xchg(lock + tile, 1, sem=REL)
    else:
        while tl.atomic_cas(lock + (p + SHIFT) // PER, 1, 1, sem="acquire") != 1:
            pass
        tl.atomic_add(c + tile * 128 + lane, lane, sem="relaxed")


@triton.jit
def gathered_parts(c, parts, lock, PER: tl.constexpr, REL: tl.constexpr, SHIFT: tl.constexpr):
    """Several programs to a tile: the first waits for each of the others in turn and adds up what they have stored."""
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    if p % PER != 0:
        tl.store(parts + p * 128 + lane, lane)
        tl.debug_barrier()
        tl.atomic_xchg(lock + p, 1, sem=REL)
    else:
        total = lane
        for j in range(1, PER):
            if p + j < tl.num_programs(0):
                while tl.atomic_cas(lock + p + j - SHIFT, 1, 1, sem="acquire") != 1:
                    pass
                total += tl.load(parts + (p + j) * 128 + lane)
        tl.store(c + p * 128 + lane, total)


@triton.jit
def carried_look(c, parts, lock, n, REL: tl.constexpr, ACQ: tl.constexpr):
    """The value a loop waits for is looked at before the loop and at the end of each round."""
    p = tl.program_id(0)
    lane = tl.arange(0, 128)
    tl.store(parts + p * 128 + lane, lane)
    tl.debug_barrier()
    tl.atomic_xchg(lock + p, 1, sem=REL)
    if p == 0:
        total = lane
        k = 1
        while k < n:
            seen = tl.atomic_add(lock + k, 0, sem=ACQ)
            while seen != 1:
                seen = tl.atomic_add(lock + k, 0, sem="acquire")
            total += tl.load(parts + k * 128 + lane)
            k += 1
        tl.store(c + lane, total)


@triton.jit
def counted_looks(out, flag, BEFORE: tl.constexpr):
    """How often a loop has to look differs from round to round, and from program to program."""
    p = tl.program_id(0)
    total = 0
    looks = 0
    for _ in range(2):
        looks = 0
        while tl.atomic_add(flag, 0, sem="acquire") != 1:
            looks += 1
        total += looks
    tl.store(out + (total - 2 * looks) * 64 * BEFORE + p, p)
    tl.atomic_xchg(flag, 1)


@triton.jit
def looked_at(count, WAIT: tl.constexpr, MASKED: tl.constexpr):
    if MASKED:
        found = tl.atomic_add(count, 0, sem=WAIT, mask=tl.program_id(0) > 0)
    else:
        found = tl.atomic_add(count, 0, sem=WAIT)
    return found


@triton.jit
def in_rounds(x, y, count, IN: tl.constexpr, WAIT: tl.constexpr, FENCE: tl.constexpr, LESS: tl.constexpr,
              GROWS: tl.constexpr, BUFFERS: tl.constexpr, MASKED: tl.constexpr, ROUNDS: tl.constexpr):  # fmt: skip
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    there = (p + 1) % n
    for t in range(ROUNDS):
        found = tl.load(x + (there * BUFFERS + (t + 1) % BUFFERS) * 128 + lane)
        tl.store(x + (p * BUFFERS + t % BUFFERS) * 128 + lane, found + 1)
        if FENCE:
            tl.debug_barrier()
        tl.atomic_add(count, 1, sem=IN)
        while looked_at(count, WAIT, MASKED) < n * (GROWS * t + 1) - LESS:
            pass
    tl.store(y + p * 128 + lane, tl.load(x + (there * BUFFERS + (ROUNDS + 1) % BUFFERS) * 128 + lane))


@triton.jit
def in_two_steps(x, y, count, FIRST: tl.constexpr, SECOND: tl.constexpr, AFTER: tl.constexpr, ROUNDS: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    for t in range(ROUNDS):
        tl.store(x + p * 128 + lane, lane + t)
        tl.debug_barrier()
        tl.atomic_add(count, 1)
        while tl.atomic_add(count, 0) < n * (2 * t + FIRST):
            pass
        tl.store(y + p * 128 + lane, tl.load(x + ((p + 1) % n) * 128 + lane))
        if AFTER:
            tl.debug_barrier()
        tl.atomic_add(count, 1)
        while tl.atomic_add(count, 0) < n * (2 * t + SECOND):
            pass


@triton.jit
def through_two(x, y, z, count, SECOND: tl.constexpr, SOME: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    there = ((p + 1) % n) * 128 + lane
    if p >= SOME:
        tl.store(x + p * 128 + lane, lane)
        tl.debug_barrier()
        tl.atomic_add(count, 1)
        while tl.atomic_add(count, 0) < n - SOME:
            pass
        tl.store(y + p * 128 + lane, tl.load(x + there, mask=there >= SOME * 128))
        tl.debug_barrier()
        tl.atomic_add(count, 1)
        while tl.atomic_add(count, 0) < (n - SOME) * SECOND:
            pass
        tl.store(z + p * 128 + lane, tl.load(y + there, mask=there >= SOME * 128))


@triton.jit
def in_halves(x, count, size, ROUNDS: tl.constexpr):
    p = tl.program_id(0)
    n = tl.num_programs(0)
    lane = tl.arange(0, 128)
    for t in range(ROUNDS):
        into = (t % 2) * size
        found = tl.load(x + size - into + ((p + 1) % n) * 128 + lane)
        tl.store(x + into + p * 128 + lane, found + 1)
        tl.debug_barrier()
        tl.atomic_add(count, 1, sem="release")
        while tl.atomic_add(count, 0, sem="acquire") < n * (t + 1):
            pass


@triton.jit
def dispatched(
    kinds,
    count,
    out,
    CAP: tl.constexpr,
    SPACE: tl.constexpr,
    STEP: tl.constexpr,
    SCOPE: tl.constexpr,
    TAKEN: tl.constexpr,
):
    p = tl.program_id(0)
    kind = tl.load(kinds + p)
    drawn = tl.atomic_add(count + kind, STEP, scope=SCOPE)
    if TAKEN:
        tl.atomic_add(count + kind, TAKEN)
    if drawn < CAP:
        tl.store(out + kind * SPACE + drawn, p)


@triton.jit
def dispatched_tiles(
    kinds, count, out, n, cap, MASKED: tl.constexpr, SPACE: tl.constexpr, EACH: tl.constexpr, BLOCK: tl.constexpr
):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = lane < n
    kind = tl.load(kinds + lane, mask=here, other=0)
    for _ in range(EACH):
        drawn = tl.atomic_add(count + kind, 1, mask=here, sem="relaxed")
        fits = drawn < cap
        if MASKED:
            fits = fits & here
        tl.store(out + kind * SPACE + drawn, lane, mask=fits)


@triton.jit
def allocated(head, out, STEP: tl.constexpr, WIDTH: tl.constexpr, TWICE: tl.constexpr):
    lane = tl.arange(0, WIDTH)
    tl.store(out + tl.atomic_add(head, STEP) + lane, lane)
    if TWICE:
        tl.store(out + tl.atomic_add(head, TWICE) + lane, lane)


@triton.jit
def steps_back(state, out, LEAST: tl.constexpr, BY: tl.constexpr):
    p = tl.program_id(0)
    j = p
    while j >= LEAST:
        found = tl.atomic_add(state, 0)
        if found == 2:
            j = LEAST - 1
        elif found == 1:
            j -= BY
    tl.store(out + p, j)


@triton.jit
def given_places(kinds, count, out, STEP: tl.constexpr, WIDTH: tl.constexpr, TWICE: tl.constexpr):
    kind = tl.load(kinds + tl.program_id(0))
    if kind >= 0:
        drawn = tl.atomic_add(count + kind, STEP, sem="relaxed")
        tl.store(out + drawn + tl.arange(0, WIDTH), kind)
        if TWICE:
            tl.store(out + tl.atomic_add(count + kind, STEP, sem="relaxed") + tl.arange(0, WIDTH), kind)


@triton.jit
def given_places_by_lanes(kinds, begin, count, out, n, EACH: tl.constexpr, BLOCK: tl.constexpr):
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    here = lane < n
    kind = tl.load(kinds + lane, mask=here, other=0)
    for _ in range(EACH):
        drawn = tl.atomic_add(count + kind, 1, mask=here, sem="relaxed")
        tl.store(out + tl.load(begin + kind, mask=here, other=0) + drawn, lane, mask=here)


@triton.jit
def given_places_by_floats(x, count, out, BLOCK: tl.constexpr):
    lane = tl.arange(0, BLOCK)
    kind = (tl.load(x + lane) > 0).to(tl.int32)
    drawn = tl.atomic_add(count + kind, 1, sem="relaxed")
    tl.store(out + drawn, lane)
