"""Time and peak memory of the engine checker from 1e4 to 1e6 instructions, beside the specified scan and the naive check.

    python benchmarks/engines.py [--largest 1000000] [--engines 6,8,16] [--slow-largest 100000]

Every measurement runs in a process of its own, so that the peak is its own; kernels are compiled before the clock starts.
Ratios and exponents are of processor time, which other work on the machine disturbs less. The specified scan and the naive
check run where they can be expected to finish, and say so where not. "compiled" is the specified scan without the cost of
the interpreter: its loops compiled, its overlap tests looked up.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from racefree.access import Dim, Pattern
from racefree.engines.builder import ProgramBuilder
from racefree.engines.program import AccessFlag, EngineProgram, MemoryKind

TILE_BYTES = 512
READ, WRITE = AccessFlag.NONE, AccessFlag.WRITE
SEMAPHORES_PER_QUEUE = 16


class Synchroniser:
    """Emits instructions with the dependencies and the semaphore waits that their tiles need."""

    def __init__(self, name: str, engines: int) -> None:
        self.builder = ProgramBuilder(name)
        self.engines = [self.builder.engine(f"E{e}") for e in range(engines)]
        self.queues = [self.builder.queue(f"q{e}") for e in range(engines)]
        self.done = [self.builder.semaphore(f"done{e}") for e in range(engines)]
        self.rotated = [
            [self.builder.semaphore(f"q{e}.{s}") for s in range(SEMAPHORES_PER_QUEUE)] for e in range(engines)
        ]
        self.counts: dict[int, int] = {}
        self.issued = [0] * engines
        self.signal: list[tuple[int, int, int]] = []
        self.writer: dict[int, int] = {}
        self.readers: dict[int, list[int]] = {}
        self.known = [dict[int, int]() for _ in range(engines)]

    def emit(
        self,
        opcode: str,
        engine: int,
        reads: list[tuple[int, int]],
        writes: list[tuple[int, int]],
        *,
        dma: bool = False,
    ) -> None:
        """An instruction that touches tiles (footprint, buffer); a tile is a footprint no other footprint meets."""
        builder = self.builder
        needs = {self.writer[t] for t, _ in reads if t in self.writer}
        for tile, _ in writes:
            needs.update(self.readers.get(tile, ()))
            if tile in self.writer:
                needs.add(self.writer[tile])
        step = builder.instruction(f"I{len(builder)}", opcode, engine, queue=self.queues[engine] if dma else -1)
        latest: dict[int, tuple[int, int]] = {}
        for source in needs:
            semaphore, value, issuer = self.signal[source]
            if issuer != engine or semaphore not in self.done:
                builder.depends(step, source)
                if value > latest.get(semaphore, (0, 0))[0]:
                    latest[semaphore] = (value, source)
        for semaphore, (value, source) in sorted(latest.items()):
            if self.known[engine].get(semaphore, 0) < value:
                self.known[engine][semaphore] = value
                builder.wait(step, semaphore, value, producer=source)
        if dma:
            # A semaphore is used again only once its last transfer is known to be done: counts then tell transfers apart.
            semaphore = self.rotated[engine][self.issued[engine] % SEMAPHORES_PER_QUEUE]
            self.issued[engine] += 1
            last = self.counts.get(semaphore, 0)
            if self.known[engine].get(semaphore, 0) < last:
                self.known[engine][semaphore] = last
                builder.wait(step, semaphore, last)
        else:
            semaphore = self.done[engine]
        amount = 16 if dma else 1
        self.counts[semaphore] = self.counts.get(semaphore, 0) + amount
        builder.update(step, semaphore, amount)
        self.signal.append((semaphore, self.counts[semaphore], engine))
        for tile, buffer in reads:
            builder.access(step, tile, buffer, READ)
            self.readers.setdefault(tile, []).append(step)
        for tile, buffer in writes:
            builder.access(step, tile, buffer, WRITE)
            self.writer[tile] = step
            self.readers[tile] = []


def synthetic(count: int, engines: int, seed: int = 1) -> EngineProgram:
    """Random engines reading one tile and writing another of a pool, one in eight asynchronous; clean but for 1 in 10,000."""
    rng = random.Random(seed)
    sync = Synchroniser(f"synthetic-{count}-{engines}", engines)
    tiles = _tiles(sync.builder, max(64, count // 64))
    for _ in range(count):
        a, b = rng.choice(tiles), rng.choice(tiles)
        if rng.random() < 1e-4:
            sync.writer.pop(a[0], None)
        sync.emit("Op", rng.randrange(engines), [a], [b], dma=rng.random() < 0.125)
    return sync.builder.build()


def matmul(count: int, engines: int) -> EngineProgram:
    """Pipelines of load, load, multiply, copy, store over double-buffered tiles; one pipeline for each five engines."""
    sync = Synchroniser(f"matmul-{count}-{engines}", engines)
    pipelines = max(1, engines // 5)
    dram = sync.builder.space(MemoryKind.DRAM, "dram")
    tensor = sync.builder.buffer("x", dram, initialised=True)
    tiles = _tiles(sync.builder, pipelines * 16)
    psum = sync.builder.space(MemoryKind.PSUM, "psum")
    banks = [
        (
            sync.builder.footprint(psum, Pattern(2048 * b, 2048), Pattern(0, 1, (Dim(1, 128),))),
            sync.builder.buffer(f"p{b}", psum),
        )
        for b in range(2 * pipelines)
    ]
    turn = 0
    while len(sync.builder) < count:
        pipe, slot = turn % pipelines, turn // pipelines % 2
        first = 5 * pipe % engines
        load_a, load_b, pe, copy, store = ((first + e) % engines for e in range(5))
        a, b, c = (tiles[16 * pipe + 3 * slot + t] for t in range(3))
        bank = banks[2 * pipe + slot]
        source = turn % 4096
        x = sync.builder.footprint(dram, Pattern(source * 65536, TILE_BYTES, (Dim(TILE_BYTES, 128),)))
        y = sync.builder.footprint(dram, Pattern((8192 + turn) * 65536, TILE_BYTES, (Dim(TILE_BYTES, 128),)))
        sync.emit("DMACopy", load_a, [(x, tensor)], [a], dma=True)
        sync.emit("DMACopy", load_b, [(x, tensor)], [b], dma=True)
        for _ in range(4):
            sync.emit("Matmult", pe, [a, b], [bank])
        sync.emit("TensorCopy", copy, [bank], [c])
        sync.emit("DMACopy", store, [c], [(y, tensor)], dma=True)
        turn += 1
    return sync.builder.build()


def _tiles(builder: ProgramBuilder, count: int) -> list[tuple[int, int]]:
    sbuf = builder.space(MemoryKind.SBUF, "sbuf")
    rows = Pattern(0, 1, (Dim(1, 128),))
    found = []
    for tile in range(count):
        bytes_in_row = Pattern(TILE_BYTES * (tile // 2) * 2 + 4 * (tile % 2), 4, (Dim(8, TILE_BYTES // 4),))
        found.append((builder.footprint(sbuf, bytes_in_row, rows), builder.buffer(f"t{tile}", sbuf)))
    return found


SHAPES: dict[str, Callable[[int, int], EngineProgram]] = {"synthetic": synthetic, "matmul": matmul}


def measure(method: str, shape: str, count: int, engines: int) -> dict[str, float]:
    """Builds a program and checks it once; seconds of the check, its races, and the peak of the process in MiB."""
    from racefree.engines.check import Options, check

    program = SHAPES[shape](count, engines)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    if method in ("dependencies", "semaphores"):
        check(SHAPES[shape](5_000, engines), order=method)
    began, busy = time.perf_counter(), time.process_time()
    if method in ("dependencies", "semaphores"):
        verdict = check(program, order=method, options=Options(repair=False))
        if verdict.refusals:
            raise SystemExit(str(verdict.refusals))
        races = verdict.orders[0].race_count
    elif method == "specified":
        from racefree.engines.reference import checker

        races = len(checker.collect(program))
    elif method == "compiled":
        races = _specified_compiled(program)
    else:
        races = _naive(program)
    seconds, busy = time.perf_counter() - began, time.process_time() - busy
    if method == "compiled":
        seconds, busy = _specified_compiled.took  # type: ignore[attr-defined]
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": seconds, "cpu": busy, "races": races, "peak": peak, "before": before}


def _specified_compiled(program: EngineProgram) -> int:
    """The specified window scan as compiled loops over arrays, with footprint pairs decided beforehand: a lower bound on
    its time, free of interpreter overhead.
    """
    import numpy as np
    from numba import njit

    from racefree.engines.footprints import conflicts
    from racefree.engines.reference.graph import from_basic_block

    graph = from_basic_block(program, program.blocks[0])
    ops, lines = graph.ops, list(graph.engines.values())
    number = {id(op): at for at, op in enumerate(ops)}
    clock = np.array([op.timestamps for op in ops], dtype=np.int32)
    owner = np.array([op.instruction for op in ops], dtype=np.int32)
    bounds = [graph.bounds(op) for op in ops]
    lower = np.array([b.lower for b in bounds], dtype=np.int64)
    upper = np.array([b.upper for b in bounds], dtype=np.int64)
    starts = np.cumsum([0] + [len(line.ops) for line in lines])
    stream = np.array([number[id(op)] for line in lines for op in line.ops], dtype=np.int64)
    met = conflicts(program)
    first = np.searchsorted(program.accesses.instruction, np.arange(len(program) + 1))
    scan = njit(_window_scan)
    columns = (program.accesses.footprint, program.accesses.flags & 1, met.meets.starts, met.meets.values)
    scan(clock[:64], owner[:64], lower[:64], upper[:64], starts * 0, stream[:64], first, *columns)
    began = time.perf_counter(), time.process_time()
    races = int(scan(clock, owner, lower, upper, starts, stream, first, *columns))
    _specified_compiled.took = time.perf_counter() - began[0], time.process_time() - began[1]  # type: ignore[attr-defined]
    return races


def _window_scan(clock, owner, lower, upper, starts, stream, first, footprint, writes, meet_start, meets):  # type: ignore[no-untyped-def]
    races = 0
    engines = clock.shape[1]
    for op in range(len(clock)):
        for line in range(len(starts) - 1):
            size = starts[line + 1] - starts[line]
            low = max(0, lower[op, line] + 1)
            high = size - 1 if upper[op, line] == 2147483647 else upper[op, line] - 1
            if high - low > 10:
                # Bisect the upper edge: the last operation that does not follow.
                left, right = low, high
                while left < right:
                    middle = (left + right + 1) // 2
                    other = stream[starts[line] + middle]
                    behind = ahead = False
                    for e in range(engines):
                        ahead = ahead or clock[op, e] > clock[other, e]
                        behind = behind or clock[op, e] < clock[other, e]
                    if behind and not ahead:
                        right = middle - 1
                    else:
                        left = middle
                high = left
            for at in range(low, high + 1):
                other = stream[starts[line] + at]
                ahead = behind = False
                for e in range(engines):
                    if clock[op, e] > clock[other, e]:
                        ahead = True
                    elif clock[op, e] < clock[other, e]:
                        behind = True
                    if ahead and behind:
                        break
                if not (ahead and behind) or owner[op] >= owner[other]:
                    continue
                hit = False
                for a in range(first[owner[op]], first[owner[op] + 1]):
                    for b in range(first[owner[other]], first[owner[other] + 1]):
                        if not hit and (writes[a] or writes[b]):
                            for entry in range(meet_start[footprint[a]], meet_start[footprint[a] + 1]):
                                hit = hit or meets[entry] == footprint[b]
                races += hit
    return races


def _naive(program: EngineProgram) -> int:
    """All pairs of instructions, each tested for concurrency and then for interference."""
    from racefree.engines.reference.checker import interfere
    from racefree.engines.reference.graph import from_basic_block

    ops = from_basic_block(program, program.blocks[0]).ops
    pairs = {
        (min(a.instruction, b.instruction), max(a.instruction, b.instruction))
        for i, a in enumerate(ops)
        for b in ops[i + 1 :]
        if a.instruction != b.instruction and a.concurrent(b)
    }
    return sum(interfere(program, one, other) is not None for one, other in pairs)


def _in_own_process(method: str, shape: str, count: int, engines: int, timeout: float) -> dict[str, float] | None:
    command = [sys.executable, __file__, "--one", method, shape, str(count), str(engines)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=True)
    except subprocess.TimeoutExpired:
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _exponent(times: list[tuple[int, float]]) -> float:
    """Slope of log time over log size, by least squares."""
    xs = [math.log(n) for n, _ in times]
    ys = [math.log(t) for _, t in times]
    x, y = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((a - x) * (b - y) for a, b in zip(xs, ys, strict=True)) / sum((a - x) ** 2 for a in xs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--engines", default="6,8,16")
    parser.add_argument("--slow-largest", type=int, default=100_000)
    parser.add_argument("--timeout", type=float, default=600)
    options = parser.parse_args()
    if options.one:
        method, shape, count, engines = options.one
        print(json.dumps(measure(method, shape, int(count), int(engines))))
        return
    sizes = [n for n in (10_000, 31_623, 100_000, 316_228, 1_000_000) if n <= options.largest]
    print(
        f"{'shape':10} {'engines':>7} {'instructions':>12} {'method':14} {'seconds':>9} {'cpu':>9} {'peak MiB':>9} {'races':>8}"
    )
    for shape in SHAPES:
        for engines in map(int, options.engines.split(",")):
            fast: dict[int, float] = {}
            for method, largest in (
                ("dependencies", options.largest),
                ("semaphores", options.largest),
                ("compiled", options.slow_largest),
                ("specified", options.slow_largest),
                ("naive", 3_000),
            ):
                times: list[tuple[int, float]] = []
                for count in [1_000, 3_000] if method == "naive" else sizes:
                    if count > largest:
                        continue
                    found = _in_own_process(method, shape, count, engines, options.timeout)
                    label = f"{shape:10} {engines:7} {count:12} {method:14}"
                    if found is None:
                        print(f"{label} over {options.timeout:.0f} s", flush=True)
                        break
                    times.append((count, found["cpu"]))
                    line = f"{label} {found['seconds']:9.3f} {found['cpu']:9.3f} {found['peak']:9.0f} {found['races']:8.0f}"
                    if method == "dependencies":
                        fast[count] = found["cpu"]
                    elif method in ("compiled", "specified") and count in fast:
                        line += f"   {found['cpu'] / fast[count]:.0f} times the fast engine"
                    print(line, flush=True)
                if len(times) > 1:
                    print(
                        f"{shape:10} {engines:7} {'':12} {method:14} time grows with n^{_exponent(times):.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
