"""Times the batch overlap decision against numpy.shares_memory on the same pairs, in one run, and counts disagreements.

python benchmarks/overlap.py [PAIRS]        (default: one million)
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from racefree.access import Dim, Pattern
from racefree.geometry import PatternArray, overlaps, overlaps_batch

ARENA = np.zeros(1 << 26, dtype=np.int8)
DTYPES = {size: np.dtype(f"i{size}") for size in (1, 2, 4, 8)}
Generator = Callable[[np.random.Generator, int], tuple[PatternArray, PatternArray]]


def main() -> None:
    """Print one line per family of pairs, then the adversarial questions."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    started = time.perf_counter()
    overlaps_batch(*tiles(np.random.default_rng(0), 40_000))
    print(f"load Numba and the compiled loop: {time.perf_counter() - started:.2f} s\n")
    print(
        "CPU microseconds per pair; 'call' is numpy.shares_memory on views built before, 'views' includes building them"
    )
    print(
        f"{'family':<12}{'pairs':>9}{'batch':>8}{'call':>8}{'ratio':>7}{'views':>8}{'ratio':>7}{'overlap':>9}"
        f"{'differ':>8}{'unknown':>9}"
    )
    families = {"tile": tiles, "interleaved": interleaved, "near miss": near_misses, "random 2-5": random_dims}
    for name, generate in families.items():
        compare(name, generate, pairs if name != "random 2-5" else pairs // 50)
    print()
    adversarial()


def compare(name: str, generate: Generator, pairs: int) -> None:
    """Time both, one thread each, on the same pairs and print one line."""
    a, b = generate(np.random.default_rng(1), pairs)
    times = []
    for _ in range(3):
        started = time.process_time()
        answers = overlaps_batch(a, b)
        times.append(time.process_time() - started)
    ours = statistics.median(times)
    call, views, expected = shares_memory(a, b)
    differ = int(((answers != expected) & (answers != 2)).sum())
    micro = 1e6 / pairs
    print(
        f"{name:<12}{pairs:>9}{ours * micro:>8.3f}{call * micro:>8.3f}{call / ours:>7.1f}{views * micro:>8.2f}"
        f"{views / ours:>7.1f}{(answers == 1).mean():>9.2f}{differ:>8}{int((answers == 2).sum()):>9}"
    )


def shares_memory(a: PatternArray, b: PatternArray) -> tuple[float, float, np.ndarray]:
    """Seconds in numpy.shares_memory alone, seconds with its views built, and its answers."""
    answers = np.zeros(len(a), dtype=np.int8)
    call = views = 0.0
    for begin in range(0, len(a), 20_000):
        rows = range(begin, min(begin + 20_000, len(a)))
        patterns = [(a.pattern(row), b.pattern(row)) for row in rows]
        started = time.process_time()
        pairs = [(view(x), view(y)) for x, y in patterns]
        built = time.process_time()
        shared = [np.shares_memory(x, y) for x, y in pairs]
        done = time.process_time()
        call += done - built
        views += done - started
        answers[begin : begin + len(shared)] = shared
    return call, views, answers


def view(pattern: Pattern) -> np.ndarray:
    """The pattern as a strided view of the arena."""
    shape = tuple([dim.count for dim in pattern.dims])
    strides = tuple([dim.step_bytes for dim in pattern.dims])
    offset = ARENA.size // 2 + pattern.base_bytes
    return np.ndarray(shape, DTYPES[pattern.elem_bytes], ARENA, offset, strides)


def tiles(rng: np.random.Generator, n: int) -> tuple[PatternArray, PatternArray]:
    """Tiles of 2 to 128 rows and columns of one row-major buffer, element sizes mixed."""

    def side() -> PatternArray:
        elem = rng.choice([1, 2, 4], n)
        pitch = np.full(n, 2048)
        counts = np.column_stack([rng.integers(2, 129, n), rng.integers(2, 129, n)])
        base = rng.integers(0, 256, n) * pitch + rng.integers(0, 2048, n) // elem * elem
        return PatternArray(base, elem, np.column_stack([pitch, elem]), counts)

    return side(), side()


def interleaved(rng: np.random.Generator, n: int) -> tuple[PatternArray, PatternArray]:
    """Both walk the same range with one stride and different phases, so ranges meet and bytes do not."""
    elem = rng.choice([2, 4, 8], n)
    lanes = rng.integers(2, 9, n)
    counts = np.column_stack([rng.integers(2, 65, n), rng.integers(2, 65, n)])
    steps = np.column_stack([elem * lanes * 64, elem * lanes])
    phase = rng.integers(1, lanes) * elem
    base = rng.integers(0, 4096, n) * 8
    return PatternArray(base, elem, steps, counts), PatternArray(base + phase, elem, steps, counts)


def near_misses(rng: np.random.Generator, n: int) -> tuple[PatternArray, PatternArray]:
    """Three-dimensional tiles whose columns end about where the other's begin, with different pitches."""

    def side(shift: np.ndarray) -> PatternArray:
        elem = rng.choice([1, 2, 4], n)
        width = rng.integers(4, 33, n)
        counts = np.column_stack([rng.integers(2, 9, n), rng.integers(2, 17, n), width])
        steps = np.column_stack([rng.choice([8192, 8256, 12288], n), rng.choice([256, 264, 512], n), elem])
        return PatternArray(shift + rng.integers(0, 4, n), elem, steps, counts)

    return side(np.zeros(n, dtype=np.int64)), side(rng.integers(32, 160, n))


def random_dims(rng: np.random.Generator, n: int) -> tuple[PatternArray, PatternArray]:
    """Two to five dims with random steps of either sign."""

    def side() -> PatternArray:
        counts = rng.integers(2, 9, (n, 5))
        counts[np.arange(5)[None, :] >= rng.integers(2, 6, n)[:, None]] = 1
        return PatternArray(
            rng.integers(0, 50_000, n), rng.choice([1, 2, 4, 8], n), rng.integers(-4000, 4000, (n, 5)), counts
        )

    return side(), side()


def adversarial() -> None:
    """Questions that take some method very long; numpy.shares_memory is asked with a work limit only."""
    rng = np.random.default_rng(2)
    worst_a = Pattern(0, 1, (Dim(36674, 1049), Dim(61119, 1049), Dim(85569, 1049)))
    worst_b = Pattern(64023025, 1, (Dim(12223, 1049), Dim(12224, 1049)))
    questions = {"NumPy's documented worst case": [(worst_a, worst_b)]}
    questions["coprime strides"] = [
        tuple(Pattern(int(rng.integers(0, 10**6)), 1, coprime(rng)) for _ in range(2)) for _ in range(20)
    ]
    questions["12 dims, 24-26 bit strides"] = [
        tuple(
            Pattern(
                int(rng.integers(0, 1 << 28)), 4, tuple(Dim(int(rng.integers(1 << 23, 1 << 26)), 4) for _ in range(6))
            )
            for _ in range(2)
        )
        for _ in range(20)
    ]
    for name, asked in questions.items():
        times, answers = [], []
        for a, b in asked:
            started = time.perf_counter()
            answers.append(overlaps(a, b))
            times.append(time.perf_counter() - started)
        counted = {str(answer): answers.count(answer) for answer in (True, False, None)}
        print(f"{name:<32} median {statistics.median(times) * 1e3:8.2f} ms, max {max(times) * 1e3:8.2f} ms  {counted}")


def coprime(rng: np.random.Generator) -> tuple[Dim, ...]:
    """Four dims with large strides that are prime."""
    return tuple(
        Dim(int(step), 40) for step in rng.choice([10007, 20011, 30011, 40009, 50021, 60013, 70001], 4, replace=False)
    )


if __name__ == "__main__":
    main()
