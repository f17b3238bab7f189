"""Kernels whose launches leave something behind that the next one reads."""

import triton
import triton.language as tl


@triton.jit
def number(index, first, step, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(index + lanes, first + step * lanes)


@triton.jit
def scatter(out, index, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + lanes), lanes)


@triton.jit
def count(x, counts, BINS: tl.constexpr, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(counts + tl.load(x + lanes) % BINS, 1)


@triton.jit
def draw(counter, out):
    at = tl.atomic_add(counter, 1)
    tl.store(out + at, tl.program_id(0))


@triton.jit
def float_sum(x, total):
    tl.atomic_add(total, tl.load(x + tl.program_id(0)))


@triton.jit
def exchange(cell):
    tl.atomic_xchg(cell, tl.program_id(0))


@triton.jit
def add_and_most(cell):
    tl.atomic_add(cell, 1)
    tl.atomic_max(cell, tl.program_id(0))


@triton.jit
def same_cell(out):
    tl.store(out, tl.program_id(0))


@triton.jit
def double_in_place(x, n, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + lanes, 2 * tl.load(x + lanes, mask=lanes < n), mask=lanes < n)


@triton.jit
def slow(out, ROUNDS: tl.constexpr):
    total = tl.program_id(0)
    for i in range(ROUNDS):
        total += i * total
    tl.store(out + tl.program_id(0), total)


@triton.jit
def partly_loaded(x, out, n, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """Lanes from n on are left out of the load; HOW says what becomes of them."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n
    value = tl.load(x + lanes, mask=mask)
    if HOW == "stored under the mask":
        tl.store(out + lanes, value * 2 + 1, mask=mask)
    if HOW == "stored":
        tl.store(out + lanes, value * 2 + 1)
    if HOW == "stored under another mask":
        tl.store(out + lanes, value, mask=lanes < n + 1)
    if HOW == "chosen by the mask":
        tl.store(out + lanes, tl.where(mask, value, 5))
    if HOW == "chosen where the mask fails":
        tl.store(out + lanes, tl.where(mask, 5, value))
    if HOW == "chosen by another mask":
        tl.store(out + lanes, tl.where(lanes < n + 1, value, 5))
    if HOW == "a narrower mask":
        tl.store(out + lanes, value, mask=mask & (value > 3))
    if HOW == "a mask of its own":
        tl.store(out + lanes, lanes, mask=value > -3)
    if HOW == "said what they are":
        tl.store(out + lanes, tl.load(x + lanes, mask=mask, other=4))
    if HOW == "a place under the mask":
        tl.store(out + value, lanes, mask=mask)
    if HOW == "a place":
        tl.store(out + value, lanes)
    if HOW == "summed up":
        tl.store(out, tl.sum(value, axis=0))
    if HOW == "chosen and summed up":
        tl.store(out, tl.sum(tl.where(mask, value, 0), axis=0))
    if HOW == "moved":
        tl.store(out + tl.arange(0, BLOCK // 2), tl.max(tl.reshape(value, (BLOCK // 2, 2)), axis=1))
    if HOW == "summed up from the end, under the mask":
        tl.store(out + lanes, tl.cumsum(value, axis=0, reverse=True), mask=mask)
    if HOW == "in rounds, under the mask of each":
        for i in range(2):
            part = lanes < n - i
            tl.store(out + i * BLOCK + lanes, tl.load(x + lanes, mask=part), mask=part)
    if HOW == "in rounds, under the mask of the next":
        kept = tl.zeros((BLOCK,), tl.int32)
        for i in range(2):
            part = lanes < n + i
            tl.store(out + i * BLOCK + lanes, kept, mask=part)
            kept = tl.load(x + lanes, mask=part)
    if HOW == "in rounds, under a mask that turns round":
        kept = tl.zeros((BLOCK,), tl.int32)
        turned = mask
        for i in range(2):
            tl.store(out + i * BLOCK + lanes, kept, mask=turned)
            kept = tl.load(x + lanes, mask=turned)
            turned = ~turned
    if HOW == "in rounds of a loop with a condition, under a mask that turns round":
        kept = tl.zeros((BLOCK,), tl.int32)
        turned = mask
        i = 0
        while i < tl.load(x + 3) % 4:
            tl.store(out + i * BLOCK + lanes, kept, mask=turned)
            kept = tl.load(x + lanes, mask=turned)
            turned = ~turned
            i += 1
    if HOW == "gathered under the mask":
        kept = tl.zeros((BLOCK,), tl.int32)
        for i in range(2):
            kept += tl.load(x + i + lanes, mask=mask)
        tl.store(out + lanes, kept, mask=mask)
    if HOW == "a branch":
        one = tl.load(x + BLOCK, mask=n > BLOCK)
        if one > -1:
            tl.store(out, 1)


@triton.jit
def shifted_by(x, out, by, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, tl.load(x + lanes + by))


@triton.jit
def quotient(x, out, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(out + lanes, 12 // tl.load(x + lanes))


@triton.autotune([triton.Config({"BLOCK": size}) for size in (16, 32)], key=[])
@triton.jit
def tuned(out, BLOCK: tl.constexpr):
    tl.store(out + tl.program_id(0), BLOCK)
