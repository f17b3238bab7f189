"""The compiled loop of the batch: the same reduction and search as for one pair, in 64-bit integers and flat arrays.

Importing this module loads Numba. Pairs whose sums could reach 2^62 are marked, not decided.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from racefree.geometry.pattern_array import SAFE_MAGNITUDE, Int64s

DISJOINT, OVERLAP, UNDECIDED = 0, 1, 2

_compiled: Any = njit(cache=True, nogil=True, error_model="numpy")


@_compiled
def _gcd(a, b):  # type: ignore[no-untyped-def]
    while b:
        a, b = b, a % b
    return a


@_compiled
def _inverse(a, m):  # type: ignore[no-untyped-def]
    """a^-1 modulo m for coprime a and m; 0 when m is 1."""
    old, new, r, rest = 0, 1, m, a % m
    while rest:
        quotient = r // rest
        old, new = new, old - quotient * new
        r, rest = rest, r - quotient * rest
    return old % m


@_compiled
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


@_compiled
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
        if at and steps[at - 1] == step:
            # Equal steps add up; close the gap that was opened for this one.
            bounds[at - 1] += bound
            for k in range(at, kept):
                steps[k], bounds[k] = steps[k + 1], bounds[k + 1]
            continue
        steps[at], bounds[at] = step, bound
        kept += 1
    high = 1
    while high < kept:
        merged = False
        step = steps[high]
        for low in range(high):
            # The product first: divisions are what this loop would spend its time on.
            if step <= steps[low] * bounds[low] + steps[low]:
                ratio = step // steps[low]
                if ratio * steps[low] == step:
                    bounds[low] += ratio * bounds[high]
                    merged = True
                    break
        if not merged:
            high += 1
            continue
        kept -= 1
        for k in range(high, kept):
            steps[k], bounds[k] = steps[k + 1], bounds[k + 1]
        high = 1
    return kept


@_compiled
def _peel(steps, bounds, n, target, reach):  # type: ignore[no-untyped-def]
    """Take off the largest steps while range alone leaves them one digit; returns (terms left, target), -1 if impossible.

    Where every step exceeds all smaller terms together this decides the whole equation.
    """
    while n:
        step, bound = steps[n - 1], bounds[n - 1]
        whole = step * bound
        below = reach - whole
        high = bound if target >= whole else target // step
        low = 0
        if target > below:
            low = (target - below + step - 1) // step
        if low > high:
            return -1, target
        target -= step * low
        if low < high:
            bounds[n - 1] = high - low
            return n, target
        reach = below
        n -= 1
    return n, target


@_compiled
def _residue(steps, bounds, n, target):  # type: ignore[no-untyped-def]
    """Divide out the common divisor, then fix the residue of the smallest step's variable if the others share a divisor.

    Returns (possible, changed, target).
    """
    others = steps[1]
    for i in range(2, n):
        if others == 1:
            break
        others = _gcd(steps[i], others)
    common = _gcd(others, steps[0])
    if common > 1:
        if target % common:
            return False, False, target
        target //= common
        others //= common
        for i in range(n):
            steps[i] //= common
    if others == 1:
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


@_compiled
def _search(steps, bounds, n, target, budget, scratch):  # type: ignore[no-untyped-def]
    """Depth first over descending steps; the terms ascend, so the search starts at the last one."""
    reaches, divisors, solid = scratch[0], scratch[1], scratch[2]
    moduli, inverses, digits, highs, rests = scratch[3], scratch[4], scratch[5], scratch[6], scratch[7]
    # Index i holds what terms 0..i-1 (the smaller steps) can do.
    reaches[0], divisors[0], solid[0] = 0, 0, 1
    for i in range(n):
        below = divisors[i]
        reaches[i + 1] = reaches[i] + steps[i] * bounds[i]
        inverses[i] = -1
        if below == 0:
            divisors[i + 1], solid[i + 1], moduli[i] = steps[i], 1, 1
            continue
        divisors[i + 1] = 1 if below == 1 else _gcd(steps[i], below)
        gapless = below == divisors[i + 1] and steps[i] <= reaches[i] + below
        solid[i + 1] = 1 if solid[i] and gapless else 0
        moduli[i] = below // divisors[i + 1]
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
            if modulus > 1:
                if inverses[level] < 0:
                    inverses[level] = _inverse(step // divisors[level + 1], modulus)
                residue = _mul_mod(rest // divisors[level + 1] % modulus, inverses[level], modulus)
                low += (residue - low) % modulus
            digits[level] = low
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


@_compiled
def _decide(steps, bounds, n, target, budget, scratch):  # type: ignore[no-untyped-def]
    while True:
        n = _collapse(steps, bounds, n)
        reach = 0
        for i in range(n):
            reach += steps[i] * bounds[i]
        if target < 0 or target > reach:
            return DISJOINT
        n, target = _peel(steps, bounds, n, target, reach)
        if n < 0:
            return DISJOINT
        if n == 0:
            return OVERLAP if target == 0 else DISJOINT
        if n == 1:
            return OVERLAP if target % steps[0] == 0 else DISJOINT
        possible, changed, target = _residue(steps, bounds, n, target)
        if not possible:
            return DISJOINT
        if not changed:
            return _search(steps, bounds, n, target, budget, scratch)


@_compiled
def decide_pairs(  # type: ignore[no-untyped-def]
    base_a, elem_a, steps_a, counts_a, base_b, elem_b, steps_b, counts_b, rows_a, rows_b, chosen, budget, answers
):
    """Write DISJOINT, OVERLAP or UNDECIDED per pair of rows; UNDECIDED too where 64 bits might not do.

    Unless `chosen`, the pairs are (0, 0), (1, 1), ... and the row arrays are not read.
    """
    depth_a, depth_b = steps_a.shape[1], steps_b.shape[1]
    size = depth_a + depth_b + 1
    steps = np.empty(size, dtype=np.int64)
    bounds = np.empty(size, dtype=np.int64)
    scratch = np.empty((8, size + 1), dtype=np.int64)
    for pair in range(len(answers)):
        i, j = (rows_a[pair], rows_b[pair]) if chosen else (pair, pair)
        target = base_b[j] - base_a[i] + elem_b[j] - 1
        steps[0] = 1
        bounds[0] = elem_a[i] + elem_b[j] - 2
        reach = bounds[0]
        least = min(elem_a[i], elem_b[j])
        # The bits in use, of signs folded away: far cheaper than a bound for each pair, and nearly always enough.
        wide_base = (base_a[i] ^ base_a[i] >> 63) | (base_b[j] ^ base_b[j] >> 63)
        wide_step = elem_a[i] | elem_b[j]
        wide_count = 0
        n = 1
        for d in range(depth_a):
            step, count = steps_a[i, d], counts_a[i, d]
            least = min(least, count)
            wide_step |= step ^ step >> 63
            wide_count |= count
            move = step * (count - 1)
            if move < 0:
                step, move = -step, -move
                target += move
            steps[n], bounds[n] = step, count - 1
            reach += move
            n += 1
        for d in range(depth_b):
            step, count = steps_b[j, d], counts_b[j, d]
            least = min(least, count)
            wide_step |= step ^ step >> 63
            wide_count |= count
            move = step * (count - 1)
            if move > 0:
                target += move
            else:
                step, move = -step, -move
            steps[n], bounds[n] = step, count - 1
            reach += move
            n += 1
        narrow = wide_base >> 55 == 0 and wide_step >> 31 == 0 and wide_count >> 20 == 0 and size < 64
        if not narrow and not (
            _is_safe(base_a[i], elem_a[i], steps_a[i], counts_a[i])
            and _is_safe(base_b[j], elem_b[j], steps_b[j], counts_b[j])
        ):
            # What was computed above may have wrapped; nothing of it is used.
            answers[pair] = UNDECIDED
        elif least == 0 or target < 0 or target > reach:
            answers[pair] = DISJOINT
        else:
            answers[pair] = _decide(steps, bounds, n, target, budget, scratch)


@_compiled
def _is_safe(base, elem, steps, counts):  # type: ignore[no-untyped-def]
    """As `PatternArray.safe`, in floating point because the integers may wrap."""
    bound = abs(float(base)) + float(elem)
    for d in range(len(steps)):
        bound += abs(float(steps[d])) * float(counts[d])
    return bound < SAFE_MAGNITUDE


def decide_columns(
    a: tuple[Int64s, Int64s, Int64s, Int64s],
    b: tuple[Int64s, Int64s, Int64s, Int64s],
    rows: tuple[Int64s, Int64s] | None,
    *,
    budget: int,
) -> np.ndarray[tuple[int], np.dtype[np.int8]]:
    """`decide_pairs` on the columns (base, elem, steps, counts) of two arrays, for the given rows or for all in step."""
    unread = np.empty(0, dtype=np.int64)
    rows_a, rows_b = (unread, unread) if rows is None else rows
    answers = np.empty(len(a[0]) if rows is None else len(rows_a), dtype=np.int8)
    decide_pairs(*a, *b, rows_a, rows_b, rows is not None, budget, answers)
    return answers
