"""Where semaphores do not do what the document says they are for: waits that release too early, wait for too much, or for
another instruction than they name, and dependencies that no wait enforces."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from racefree.engines.counters import Counters
from racefree.engines.describe import source_line
from racefree.engines.grouping import stable_order
from racefree.engines.order import Order
from racefree.engines.program import I64, EngineProgram
from racefree.engines.records import Disagreement
from racefree.engines.semaphores import Deadlock, SemaphoreOrder
from racefree.engines.timeline import Timelines

MOST_REPORTED = 1_000


def disagreements(program: EngineProgram, solved: SemaphoreOrder) -> list[Disagreement]:
    """All disagreements of one unrolling, by step, at most MOST_REPORTED of waits and of dependencies each."""
    return _of_waits(program, solved) + _of_dependencies(program, solved.order)


def stuck_waits(program: EngineProgram, timelines: Timelines, deadlock: Deadlock) -> list[Disagreement]:
    """The waits at which a program that cannot finish stops."""
    found: list[Disagreement] = []
    for wait in deadlock.waits:
        instruction = int(timelines.instruction[wait.step])
        semaphore = program.semaphores[wait.semaphore]
        name = program.names[instruction]
        message = f"{name} waits for {wait.value} on semaphore {semaphore}, which never exceeds {wait.reached}"
        found.append(Disagreement("deadlock", name, None, semaphore, message, source_line(program, instruction)))
    return found


def _of_waits(program: EngineProgram, solved: SemaphoreOrder) -> list[Disagreement]:
    counters, order = solved.counters, solved.order
    lines = order.timelines
    step = np.repeat(np.arange(len(lines)), np.diff(counters.waits))
    named = program.waits.producer[counters.wait_row]
    asked = np.flatnonzero(named >= 0)
    producer = _latest_before(lines, named[asked], step[asked])
    exists = producer >= 0
    count, updates = _count_after(counters, producer, counters.wait_counter[asked], len(lines))
    ordered = np.zeros(len(asked), dtype=bool)
    ordered[exists] = order.completed_before_each(producer[exists], step[asked][exists])
    value = counters.wait_value[asked]
    fine = exists & updates & ordered & (value <= count)
    if fine.all():
        return []
    found: list[Disagreement] = []
    peak = solved.peak()
    for at in np.flatnonzero(~fine).tolist()[:MOST_REPORTED]:
        wait = int(asked[at])
        semaphore = int(counters.semaphore[counters.wait_counter[wait]])
        kind, text = _judge(
            program,
            semaphore,
            exists=bool(exists[at]),
            updates=bool(updates[at]),
            ordered=bool(ordered[at]),
            value=int(value[at]),
            count=int(count[at]),
            peak=int(peak[wait]),
            repeated=int(lines.iteration[step[wait]]) > 0,
        )
        instruction = int(lines.instruction[step[wait]])
        name, by = program.names[instruction], program.names[int(named[wait])]
        message = f"{name} waits for {by} by {int(value[at])} on semaphore {program.semaphores[semaphore]}, {text}"
        where = source_line(program, instruction)
        found.append(Disagreement(kind, name, by, program.semaphores[semaphore], message, where))
    return found


def _judge(
    program: EngineProgram,
    semaphore: int,
    *,
    exists: bool,
    updates: bool,
    ordered: bool,
    value: int,
    count: int,
    peak: int,
    repeated: bool,
) -> tuple[str, str]:
    if not exists:
        return "later-producer", "which comes later"
    if not updates:
        if not (program.updates.semaphore == semaphore).any():
            return "no-update", "which nothing updates"
        return "wrong-producer", "which that instruction does not update in between"
    if value > count:
        return "over-waited", f"which stands at {count} right after it"
    if repeated:
        return "stale-after-loop", f"which counts on from earlier iterations and can be {peak} without it"
    return "released-too-early", f"which others can raise to {peak} before it is done"


def _latest_before(lines: Timelines, instruction: npt.NDArray[np.int32], step: I64) -> I64:
    """The last execution of each instruction before a step, or -1."""
    order = stable_order(lines.instruction, len(lines.program))
    width = len(lines) + 1
    keys = lines.instruction[order].astype(np.int64) * width + order
    at = np.searchsorted(keys, instruction.astype(np.int64) * width + step) - 1
    found = order[np.maximum(at, 0)]
    good = (at >= 0) & (lines.instruction[found] == instruction)
    return np.where(good, found, -1)


def _count_after(
    counters: Counters, producer: I64, counter: npt.NDArray[np.int32], steps: int
) -> tuple[I64, npt.NDArray[np.bool_]]:
    """What each counter would show right after a step if all ran in document order, and whether the step updates it."""
    if not len(counters.counter):
        return np.zeros(len(producer), dtype=np.int64), np.zeros(len(producer), dtype=bool)
    step = np.repeat(np.arange(steps), np.diff(counters.updates))
    order = stable_order(counters.counter, len(counters.initial))
    running = np.cumsum(counters.amount[order])
    fresh = np.ones(len(order), dtype=bool)
    fresh[1:] = counters.counter[order][1:] != counters.counter[order][:-1]
    base = np.repeat(
        running[fresh] - counters.amount[order][fresh], np.diff(np.append(np.flatnonzero(fresh), len(order)))
    )
    shown = running - base + counters.initial[counters.counter[order]]
    keys = counters.counter[order].astype(np.int64) * (steps + 1) + step[order]
    at = np.searchsorted(keys, counter.astype(np.int64) * (steps + 1) + producer, side="right") - 1
    hit = (at >= 0) & (producer >= 0) & (keys[np.maximum(at, 0)] == counter.astype(np.int64) * (steps + 1) + producer)
    return np.where(hit, shown[np.maximum(at, 0)], 0), hit


def _of_dependencies(program: EngineProgram, order: Order) -> list[Disagreement]:
    lines = order.timelines
    holds = order.completed_before_each(lines.edge_source, lines.edge_target)
    found: list[Disagreement] = []
    for at in np.flatnonzero(~holds).tolist()[:MOST_REPORTED]:
        source, target = int(lines.instruction[lines.edge_source[at]]), int(lines.instruction[lines.edge_target[at]])
        name, by = program.names[target], program.names[source]
        message = f"{name} depends on {by}, and no wait makes it follow"
        found.append(Disagreement("missing-wait", name, by, None, message, source_line(program, target)))
    return found
