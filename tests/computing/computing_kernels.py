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
