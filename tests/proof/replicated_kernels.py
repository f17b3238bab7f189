"""Kernels that write what they have loaded, with `ELEMENTS` elements and, if asked, a barrier in between."""

import triton
import triton.language as tl


@triton.jit
def update(p, out, ELEMENTS: tl.constexpr, FENCED: tl.constexpr):
    here = p + tl.arange(0, ELEMENTS)
    value = tl.load(here)
    if FENCED:
        tl.debug_barrier()
    tl.store(here, value + 1)
    tl.store(out + tl.arange(0, ELEMENTS), value)


@triton.jit
def update_scalar(p, out, FENCED: tl.constexpr):
    value = tl.load(p)
    if FENCED:
        tl.debug_barrier()
    tl.store(p, value + 1)
    tl.store(out + tl.arange(0, 128), value)


@triton.jit
def update_under_lock(p, lock, FENCED: tl.constexpr):
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    value = tl.load(p)
    if FENCED:
        tl.debug_barrier()
    tl.store(p, value + 1)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def copy(p, out):
    tl.store(out, tl.load(p))


@triton.jit
def shifted(x, ELEMENTS: tl.constexpr):
    lanes = tl.arange(0, ELEMENTS)
    tl.store(x + lanes, lanes)
    tl.debug_barrier()
    tl.store(x + lanes + 1, lanes)


@triton.jit
def reduced(p, other, ELEMENTS: tl.constexpr, STORED: tl.constexpr):
    lane = tl.arange(0, ELEMENTS)
    largest = tl.max(tl.load(p + lane), 0)
    unrelated = tl.max(tl.load(other + lane), 0)
    tl.store(other + ELEMENTS, largest)
    if STORED == "its maximum":
        tl.store(p + ELEMENTS - 1 - lane, largest + lane)
    elif STORED == "another maximum":
        tl.store(p + lane, unrelated + lane)
    else:
        tl.store(p + lane, lane)
