"""Times the geometry rung against importing torch and triton, in one run, and shows what its cost grows with.

python benchmarks/geometry_rung.py [REPEATS]        (default: 5)

The rung alone is timed (kernels are compiled and read before), each time on a new `Program`-and-launch pair with nothing kept
from earlier calls. `first` is the first call in the process, which loads the rung's modules and compiled loops.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program
from racefree.triton.capture import capture_one
from racefree.ttir.read import read_program


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out + offsets, tl.load(x + offsets, mask) + tl.load(y + offsets, mask), mask)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    total = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        inner = start + tl.arange(0, K)
        left = tl.load(a + rows[:, None] * k + inner[None, :], (rows[:, None] < m) & (inner[None, :] < k))
        right = tl.load(b + inner[:, None] * n + columns[None, :], (inner[:, None] < k) & (columns[None, :] < n))
        total += tl.dot(left, right)
    tl.store(c + rows[:, None] * n + columns[None, :], total, (rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def add_in_place(x, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(x + offsets, tl.load(x + offsets, mask) + 1, mask)


@dataclass(frozen=True, slots=True)
class Measured:
    """One launch: how often a program runs, elements touched, seconds of the first call and the median of the others."""

    name: str
    programs: int
    elements: int
    first: float
    median: float


def main() -> None:
    """Print the comparison with the imports, then the growth."""
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    head = f"{'launch':<44}{'programs':>10}{'elements':>12}{'first ms':>10}{'median ms':>11}"
    imports = [imported() for _ in range(repeats)]
    rows = [vector_add(1 << 24, 1024, repeats), square_matmul(1024, repeats)]
    middle = statistics.median(imports)
    print(f"import torch, triton in a new process: median {middle:.2f} s of {[round(s, 2) for s in imports]}\n")
    print(head + f"{'of import':>11}")
    for row in rows:
        print(told(row) + f"{row.median / middle:>11.1%}")
    print("\nthe same 1024 programs, larger tiles")
    print(head)
    for block in (1 << 10, 1 << 12, 1 << 14, 1 << 16, 1 << 18, 1 << 20):
        print(told(vector_add(1024 * block, block, repeats)))
    print("\nthe same 65536 programs, larger tiles, updated in place")
    print(head)
    for block in (1 << 4, 1 << 6, 1 << 8, 1 << 10, 1 << 12, 1 << 14):
        print(told(update(65536 * block, block, repeats)))
    print("\ntiles of 1024, more programs")
    print(head)
    for elements in (1 << 20, 1 << 22, 1 << 24, 1 << 26, 1 << 28, 1 << 30):
        print(told(vector_add(elements, 1024, repeats)))
    print("\nmatmul in 64x64x32 tiles, larger matrices")
    print(head)
    for side in (512, 1024, 2048, 4096, 8192):
        print(told(square_matmul(side, repeats)))


def told(row: Measured) -> str:
    return f"{row.name:<44}{row.programs:>10}{row.elements:>12}{1e3 * row.first:>10.1f}{1e3 * row.median:>11.1f}"


def imported() -> float:
    """Seconds a new Python process takes to import torch and triton."""
    code = "import time; t = time.perf_counter(); import torch, triton; print(time.perf_counter() - t)"
    return float(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout)


def vector_add(elements: int, block: int, repeats: int) -> Measured:
    x, y, out = (empty(elements) for _ in range(3))
    grid = (triton.cdiv(elements, block),)
    name = f"vector add, tiles of {block}"
    return measure(name, 3 * elements, add, (x, y, out, elements), {"BLOCK": block}, grid, repeats)


def update(elements: int, block: int, repeats: int) -> Measured:
    grid = (triton.cdiv(elements, block),)
    name = f"update in place, tiles of {block}"
    return measure(name, elements, add_in_place, (empty(elements), elements), {"BLOCK": block}, grid, repeats)


def square_matmul(side: int, repeats: int) -> Measured:
    tensors = [empty(side * side) for _ in range(3)]
    grid = (triton.cdiv(side, 64), triton.cdiv(side, 64))
    tile = {"M": 64, "N": 64, "K": 32}
    name = f"matmul {side}^3 in 64x64x32"
    return measure(name, 3 * side * side, matmul, (*tensors, side, side, side), tile, grid, repeats)


def empty(elements: int) -> torch.Tensor:
    """Pages that nothing touches take no memory, so a tensor may be larger than the machine."""
    return torch.empty(elements, dtype=torch.float32)


def measure(
    name: str,
    elements: int,
    kernel: Any,
    arguments: tuple[Any, ...],
    constants: dict[str, int],
    grid: tuple[int, ...],
    repeats: int,
) -> Measured:
    launch = capture_one(kernel, arguments, dict(constants), grid)
    config = launch.configs[0]
    if config.module is None or config.facts is None:
        raise SystemExit(f"{name}: {config.failure}")
    program = read_program(config.module)
    times = [timed(program, config.facts) for _ in range(1 + repeats)]
    x, y, z = config.facts.grid
    return Measured(name, x * y * z, elements, times[0], statistics.median(times[1:]))


def timed(program: Program, facts: LaunchFacts) -> float:
    """Seconds the rung takes, its own imports included; it must find the launch clean."""
    started = time.perf_counter()
    from racefree.proof.footprint import rung

    found = rung.decide(program, facts, strict=False)
    seconds = time.perf_counter() - started
    if found.races or found.doubt is not None:
        raise SystemExit(f"a clean launch was not found clean: {found}")
    return seconds


if __name__ == "__main__":
    main()
