"""The compiled loop of the batch: the same reduction and search as for one pair, in 64-bit integers and flat arrays.

Importing this module loads Numba. Callers guarantee that no sum of step * count reaches 2^62.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from racefree.geometry.pattern_array import Int64s

DISJOINT, OVERLAP, UNDECIDED = 0, 1, 2


@njit(cache=True, nogil=True, error_model="numpy")
def _gcd(a, b):  # type: ignore[no-untyped-def]
    while b:
        a, b = b, a % b
    return a


@njit(cache=True, nogil=True, error_model="numpy")
def _inverse(a, m):  # type: ignore[no-untyped-def]
    """a^-1 modulo m for coprime a and m; 0 when m is 1."""
    old, new, r, rest = 0, 1, m, a % m
    while rest:
        quotient = r // rest
        old, new = new, old - quotient * new
        r, rest = rest, r - quotient * rest
    return old % m


@njit(cache=True, nogil=True, error_model="numpy")
def _mul_mod(a, b, m):  # type: ignore[no-untyped-def]
    """a * b mod m for 0 <= a, b < m < 2^62, by doubling where the product would overflow."""
    if m < 3037000499:
        return a * b % m
    out = 0
    while b:
        if b & 1:
            out = (out + a) % m
        a = (a + a) % m
        b >>= 1
    return out


@njit(cache=True, nogil=True, error_model="numpy")
def _collapse(steps, bounds, n):  # type: ignore[no-untyped-def]
    """Drop empty terms, sort the rest by ascending step, merge gapless ones; returns how many are left."""
    kept = 0
    for i in range(n):
        step, bound = steps[i], bounds[i]
        if step == 0 or bound == 0:
            continue
        at = kept
        while at and steps[at - 1] > step:
            steps[at], bounds[at] = steps[at - 1], bounds[at - 1]
            at -= 1
        steps[at], bounds[at] = step, bound
        kept += 1
    high = 1
    while high < kept:
        merged = False
        for low in range(high):
            ratio = steps[high] // steps[low]
            if ratio <= bounds[low] + 1 and ratio * steps[low] == steps[high]:
                bounds[low] += ratio * bounds[high]
                for k in range(high, kept - 1):
                    steps[k], bounds[k] = steps[k + 1], bounds[k + 1]
                kept -= 1
                merged = True
                break
        high = 1 if merged else high + 1
    return kept


@njit(cache=True, nogil=True, error_model="numpy")
def _residue(steps, bounds, n, target):  # type: ignore[no-untyped-def]
    """Divide out the common divisor, then fix the residue of the smallest step's variable if the others share a divisor.

    Returns (possible, changed, target).
    """
    others = 0
    for i in range(1, n):
        others = _gcd(steps[i], others)
    common = _gcd(steps[0], others)
    if target % common:
        return False, False, target
    if common > 1:
        target //= common
        others //= common
        for i in range(n):
            steps[i] //= common
    if others <= 1:
        return True, False, target
    residue = target % others
    if steps[0] != 1:
        residue = _mul_mod(residue, _inverse(steps[0], others), others)
    if residue > bounds[0]:
        return False, False, target
    target = (target - steps[0] * residue) // others
    bounds[0] = (bounds[0] - residue) // others
    for i in range(1, n):
        steps[i] //= others
    return True, True, target


@njit(cache=True, nogil=True, error_model="numpy")
def _search(steps, bounds, n, target, budget, scratch):  # type: ignore[no-untyped-def]
    """Depth-first over descending steps; the terms are sorted ascending, so level i is term n - 1 - i read from the end."""
    reaches, divisors, solid = scratch[0], scratch[1], scratch[2]
    moduli, inverses, digits, highs, rests = scratch[3], scratch[4], scratch[5], scratch[6], scratch[7]
    # Index i holds what terms 0..i-1 (the smaller steps) can do.
    reaches[0], divisors[0], solid[0] = 0, 0, 1
    for i in range(n):
        below = divisors[i]
        reaches[i + 1] = reaches[i] + steps[i] * bounds[i]
        divisors[i + 1] = _gcd(steps[i], below)
        if below == 0:
            solid[i + 1] = 1
            moduli[i], inverses[i] = 1, 0
            continue
        gapless = below == divisors[i + 1] and steps[i] <= reaches[i] + below
        solid[i + 1] = 1 if solid[i] and gapless else 0
        moduli[i] = below // divisors[i + 1]
        inverses[i] = _inverse(steps[i] // divisors[i + 1], moduli[i])
    if target < 0 or target > reaches[n] or target % divisors[n]:
        return DISJOINT
    if solid[n]:
        return OVERLAP
    level = n - 1
    rests[level] = target
    entering = True
    while level < n:
        step, modulus, rest = steps[level], moduli[level], rests[level]
        if entering:
            low = 0
            if rest > reaches[level]:
                low = (rest - reaches[level] + step - 1) // step
            residue = _mul_mod(rest // divisors[level + 1] % modulus, inverses[level], modulus)
            digits[level] = low + (residue - low) % modulus
            highs[level] = min(bounds[level], rest // step)
        else:
            digits[level] += modulus
        if digits[level] > highs[level]:
            level += 1
            entering = False
            continue
        if solid[level]:
            return OVERLAP
        budget -= 1
        if budget < 0:
            return UNDECIDED
        rests[level - 1] = rest - step * digits[level]
        level -= 1
        entering = True
    return DISJOINT


@njit(cache=True, nogil=True, error_model="numpy")
def _decide(steps, bounds, n, target, budget, scratch):  # type: ignore[no-untyped-def]
    changed = True
    while changed:
        n = _collapse(steps, bounds, n)
        reach = 0
        for i in range(n):
            reach += steps[i] * bounds[i]
        if target < 0 or target > reach:
            return DISJOINT
        if n == 0:
            return OVERLAP
        if n == 1:
            return OVERLAP if target % steps[0] == 0 else DISJOINT
        possible, changed, target = _residue(steps, bounds, n, target)
        if not possible:
            return DISJOINT
    return _search(steps, bounds, n, target, budget, scratch)


@njit(cache=True, nogil=True, error_model="numpy")
def decide_pairs(  # type: ignore[no-untyped-def]
    base_a, elem_a, steps_a, counts_a, base_b, elem_b, steps_b, counts_b, rows_a, rows_b, budget, answers
):
    """Write DISJOINT, OVERLAP or UNDECIDED for each pair of rows whose patterns are not empty."""
    depth_a, depth_b = steps_a.shape[1], steps_b.shape[1]
    size = depth_a + depth_b + 1
    steps = np.empty(size, dtype=np.int64)
    bounds = np.empty(size, dtype=np.int64)
    scratch = np.empty((8, size + 1), dtype=np.int64)
    for pair in range(len(rows_a)):
        i, j = rows_a[pair], rows_b[pair]
        target = base_b[j] - base_a[i] + elem_b[j] - 1
        steps[0] = 1
        bounds[0] = elem_a[i] + elem_b[j] - 2
        reach = bounds[0]
        n = 1
        for d in range(depth_a):
            step, bound = steps_a[i, d], counts_a[i, d] - 1
            if step < 0:
                step = -step
                target += step * bound
            steps[n], bounds[n] = step, bound
            reach += step * bound
            n += 1
        for d in range(depth_b):
            step, bound = steps_b[j, d], counts_b[j, d] - 1
            if step > 0:
                target += step * bound
            else:
                step = -step
            steps[n], bounds[n] = step, bound
            reach += step * bound
            n += 1
        if target < 0 or target > reach:
            answers[pair] = DISJOINT
        else:
            answers[pair] = _decide(steps, bounds, n, target, budget, scratch)


def decide_columns(
    a: tuple[Int64s, Int64s, Int64s, Int64s],
    b: tuple[Int64s, Int64s, Int64s, Int64s],
    rows: tuple[Int64s, Int64s],
    budget: int,
) -> Int64s:
    """`decide_pairs` on the columns (base, elem, steps, counts) of two arrays; answers as an int64 array."""
    answers = np.empty(len(rows[0]), dtype=np.int64)
    decide_pairs(*a, *b, *rows, budget, answers)
    return answers
