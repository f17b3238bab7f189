"""Time and peak memory of the engine checker from 1e4 to 1e6 instructions, beside the specified scan and all pairs.

    python benchmarks/engines.py [--largest 1000000] [--engines 6,8,16] [--limit 600] [--budget 400]

Every measurement runs in a process of its own, so that the peak is its own; kernels are compiled before the clock starts.
Ratios and exponents are of processor time, which other work on the machine disturbs less. The fast engine checks as the
command line does by default, under one order or both. The specified scan stands here as it is, in plain Python, and compiled:
its loops without the interpreter, its overlap tests looked up, its graph built beforehand. It and the comparison of all pairs
run from small sizes up, as long as the next size is expected to take less than the limit and than what is left of the
method's budget; the expected time is printed where they do not.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from engine_methods import FAST, SLOW, Measured, measure
from engine_shapes import SHAPES

FAST_SIZES = (10_000, 31_623, 100_000, 316_228, 1_000_000)
SLOW_SIZES = {
    "compiled scan": (10_000, 31_623, 100_000),
    "specified scan": (1_000, 3_162, 10_000, 31_623, 100_000),
    "all pairs": (1_000, 3_162, 10_000),
}
UNKNOWN_GROWTH = 2.0
"""The exponent expected of the slow methods as long as only one size was measured."""


@dataclass
class Table:
    """Prints rows as they are measured."""

    limit: float
    budget: float
    fast: dict[tuple[str, int, int], float] = field(default_factory=dict)

    def row(self, method: str, shape: str, engines: int, count: int, text: str) -> None:
        print(f"{method:14} {shape:10} {engines:7} {count:12,} {text}", flush=True)

    def measured(self, method: str, shape: str, engines: int, count: int) -> Measured | None:
        found = _in_own_process(method, shape, count, engines, self.limit)
        if found is None:
            self.row(method, shape, engines, count, f"over {self.limit:.0f} s")
            return None
        text = f"{found.seconds:9.3f} {found.cpu:9.3f} {found.peak:9.0f} {found.races:8}"
        fast = self.fast.get((shape, engines, count))
        if method in SLOW and fast:
            text += f"   {found.cpu / fast:,.0f} times the fast engine"
        self.row(method, shape, engines, count, text)
        return found

    def quick(self, method: str, shape: str, engines: int, largest: int) -> None:
        """The fast engine at all sizes, and how its time grows."""
        times: list[tuple[int, float]] = []
        for count in FAST_SIZES:
            found = self.measured(method, shape, engines, count) if count <= largest else None
            if found is not None:
                times.append((count, found.cpu))
                if method == "dependencies":
                    self.fast[shape, engines, count] = found.cpu
        self.growth(method, shape, engines, times)

    def slow(self, method: str, each: Sequence[tuple[str, int]], largest: int) -> None:
        """One of the others, small sizes first, as far as time allows."""
        times: dict[tuple[str, int], list[tuple[int, float]]] = {one: [] for one in each}
        left = self.budget
        for count in SLOW_SIZES[method]:
            for shape, engines in each if count <= largest else ():
                expected = _expected(times[shape, engines], count)
                if left <= 0 or expected > min(self.limit, left):
                    why = "" if expected > self.limit else f", {max(left, 0):.0f} s of the budget are left"
                    self.row(method, shape, engines, count, f"not run: about {expected:,.0f} s expected{why}")
                    continue
                found = self.measured(method, shape, engines, count)
                left -= self.limit if found is None else found.seconds
                if found is not None:
                    times[shape, engines].append((count, found.cpu))
        for (shape, engines), measured in times.items():
            self.growth(method, shape, engines, measured)

    def growth(self, method: str, shape: str, engines: int, times: list[tuple[int, float]]) -> None:
        if len(times) > 1:
            print(f"{method:14} {shape:10} {engines:7} {'':12} time grows as n^{_exponent(times):.2f}", flush=True)


def _expected(times: list[tuple[int, float]], count: int) -> float:
    """Seconds by the growth over the last two sizes, which counts as linear at least; 0 when nothing is known."""
    if not times:
        return 0.0
    growth = max(1.0, _exponent(times[-2:])) if len(times) > 1 else UNKNOWN_GROWTH
    last, seconds = times[-1]
    return float(seconds * (count / last) ** growth)


def _exponent(times: list[tuple[int, float]]) -> float:
    """Slope of log time over log size, by least squares."""
    xs = [math.log(n) for n, _ in times]
    ys = [math.log(max(t, 1e-6)) for _, t in times]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def _in_own_process(method: str, shape: str, count: int, engines: int, timeout: float) -> Measured | None:
    command = [sys.executable, __file__, "--one", method, shape, str(count), str(engines)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=True)
    except subprocess.TimeoutExpired:
        return None
    except subprocess.CalledProcessError as failed:
        raise SystemExit(f"{' '.join(command)} failed:\n{failed.stderr}") from failed
    return Measured(**json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--largest", type=int, default=1_000_000, help="instructions of the largest program")
    parser.add_argument("--engines", default="6,8,16", help="numbers of engines")
    parser.add_argument("--limit", type=float, default=600, help="seconds one measurement may take")
    parser.add_argument("--budget", type=float, default=400, help="seconds each slow method may take")
    options = parser.parse_args()
    if options.one:
        method, shape, count, engines = options.one
        print(json.dumps(asdict(measure(method, shape, int(count), int(engines)))))
        return
    header = f"{'seconds':>9} {'cpu':>9} {'peak MiB':>9} {'races':>8}"
    print(f"{'method':14} {'shape':10} {'engines':>7} {'instructions':>12} {header}")
    table = Table(options.limit, options.budget)
    each = [(shape, int(engines)) for shape in SHAPES for engines in options.engines.split(",")]
    for shape, engines in each:
        for method in FAST:
            table.quick(method, shape, engines, options.largest)
    for method in SLOW:
        table.slow(method, each, options.largest)


if __name__ == "__main__":
    main()
