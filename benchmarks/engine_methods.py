"""Ways to check one engine program, measured: the fast engine, the specified scan as it is and compiled, all pairs."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from engine_shapes import SHAPES, synthetic
from numba import njit

from racefree.engines.check import Options, check
from racefree.engines.footprints import conflicts
from racefree.engines.program import EngineProgram
from racefree.engines.reference import checker
from racefree.engines.reference.graph import from_basic_block

FAST = ("dependencies", "semaphores", "both")
SLOW = ("compiled scan", "specified scan", "all pairs")

WARMING = 5_000
"""Instructions of the racy program that compiles every kernel before the clock starts."""


@dataclass(frozen=True)
class Measured:
    """Seconds by the clock and of the processors, races found, and peak of the process in MiB: all, and before the check."""

    seconds: float
    cpu: float
    races: int
    peak: float
    before: float


def measure(method: str, shape: str, count: int, engines: int) -> Measured:
    """Builds a program and checks it once."""
    program = SHAPES[shape](count, engines)
    if method in FAST:
        check(synthetic(WARMING, engines, left_out=0.01), order=method)
    before = _peak()
    match method:
        case "specified scan":
            seconds, cpu, races = _timed(lambda: len(checker.collect(program)))
        case "compiled scan":
            seconds, cpu, races = _compiled(program)
        case "all pairs":
            seconds, cpu, races = _timed(lambda: _naive(program))
        case _:
            seconds, cpu, races = _timed(lambda: _checked(program, method))
    return Measured(seconds, cpu, races, _peak(), before)


def _timed(run: Callable[[], int]) -> tuple[float, float, int]:
    began, busy = time.perf_counter(), time.process_time()
    races = run()
    return time.perf_counter() - began, time.process_time() - busy, races


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _checked(program: EngineProgram, order: str) -> int:
    """What the command line does by default, under one order or both; the races of the order that has most."""
    verdict = check(program, order=order, options=Options())
    if verdict.refusals:
        raise SystemExit(str(verdict.refusals))
    return max(one.race_count for one in verdict.orders)


def _compiled(program: EngineProgram) -> tuple[float, float, int]:
    """The specified window scan as compiled loops over arrays, with footprint pairs decided beforehand: a lower bound on
    its time, free of interpreter overhead.
    """
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
    return _timed(lambda: int(scan(clock, owner, lower, upper, starts, stream, first, *columns)))


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
    ops = from_basic_block(program, program.blocks[0]).ops
    pairs = {
        (min(a.instruction, b.instruction), max(a.instruction, b.instruction))
        for i, a in enumerate(ops)
        for b in ops[i + 1 :]
        if a.instruction != b.instruction and a.concurrent(b)
    }
    return sum(checker.interfere(program, one, other) is not None for one, other in pairs)
