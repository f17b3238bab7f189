"""How often to run each loop so that what races then is all that can ever race, whatever the number of iterations.

Dependencies look the same from every iteration, so two iterations show every pair: a pair further apart that races has a
neighbour that does. Counters that no reset stops grow from one iteration to the next until every wait of the loop holds
at once; from there on iterations look alike again, and that many iterations, and a few more, show every pair.
"""

from __future__ import annotations

from itertools import product

import numpy as np
import numpy.typing as npt

from racefree.engines.order import Order
from racefree.engines.program import EngineProgram, Loop, UpdateMode
from racefree.engines.timeline import Timelines, loop_instructions
from racefree.errors import Refused

MOST_ITERATIONS = 64
MOST_STEPS = 20_000_000
SPELLED_OUT = 50_000
"""Steps up to which a loop with a known number of iterations is simply run that often."""
MOST_COMBINATIONS = 9
LARGEST_SKEW = 1
"""Iterations by which an engine may have to be ahead of another one for that to go on."""


def dependency_trips(program: EngineProgram) -> list[tuple[int, ...]]:
    """The unrollings that show every race under dependency order."""
    return _combinations(program, [[1, 2] if loop.trips is None else [min(loop.trips, 2)] for loop in program.loops])


def semaphore_trips(program: EngineProgram) -> list[tuple[int, ...]]:
    """The unrollings that show every race under semaphore order.

    Raises Refused where the count of a semaphore after a loop depends on an unknown number of iterations, and where too
    many iterations would be needed.
    """
    choices: list[list[int]] = []
    for loop in program.loops:
        enough = _saturation(program, loop) + LARGEST_SKEW + 2
        known = loop.trips is not None and loop.trips * len(loop_instructions(program, loop)) <= SPELLED_OUT
        if loop.trips is not None and (known or loop.trips <= enough):
            choices.append([loop.trips])
            continue
        if enough > MOST_ITERATIONS:
            raise Refused("loop-distance", f"{enough} iterations of one loop would have to be looked at together")
        _refuse_counts_after(program, loop)
        choices.append([enough] if loop.trips is not None else sorted({1, 2, enough}))
    return _combinations(program, choices)


def _combinations(program: EngineProgram, choices: list[list[int]]) -> list[tuple[int, ...]]:
    count = int(np.prod([len(choice) for choice in choices])) if choices else 1
    if count <= MOST_COMBINATIONS:
        combinations = list(product(*choices))
    else:
        longest = max(len(choice) for choice in choices)
        combinations = [tuple(choice[min(at, len(choice) - 1)] for choice in choices) for at in range(longest)]
    for trips in combinations:
        extra = sum(
            (t - 1) * len(loop_instructions(program, loop)) for t, loop in zip(trips, program.loops, strict=True)
        )
        if len(program) + extra > MOST_STEPS:
            raise Refused("program-size", f"more than {MOST_STEPS} steps once its loops are unrolled")
    return combinations


def _saturation(program: EngineProgram, loop: Loop) -> int:
    """Iterations after which the counters that the loop only adds to satisfy all of its waits."""
    inside = loop_instructions(program, loop)
    updates, waits = program.updates, program.waits
    in_loop = (updates.instruction >= inside.start) & (updates.instruction < inside.stop)
    waited = (waits.instruction >= inside.start) & (waits.instruction < inside.stop)
    adds = updates.mode == UpdateMode.ADD
    added = np.zeros(len(program.semaphores), dtype=np.int64)
    np.add.at(added, updates.semaphore[in_loop & adds], updates.amount[in_loop & adds])
    added[updates.semaphore[in_loop & ~adds]] = 0
    highest = np.zeros(len(program.semaphores), dtype=np.int64)
    np.maximum.at(highest, waits.semaphore[waited], waits.value[waited])
    grows = added > 0
    return int((-(-highest[grows] // added[grows])).max(initial=1))


def _refuse_counts_after(program: EngineProgram, loop: Loop) -> None:
    inside = loop_instructions(program, loop)
    updates, waits = program.updates, program.waits
    in_loop = (updates.instruction >= inside.start) & (updates.instruction < inside.stop)
    resets = updates.mode == UpdateMode.SET
    never = len(program)
    first_reset = np.full(len(program.semaphores), never, dtype=np.int64)
    after = resets & (updates.instruction >= inside.stop)
    np.minimum.at(first_reset, updates.semaphore[after], updates.instruction[after])
    first_reset[updates.semaphore[resets & in_loop]] = -1
    moving = np.zeros(len(program.semaphores), dtype=bool)
    moving[updates.semaphore[in_loop]] = True
    late = waits.instruction >= inside.stop
    open_waits = np.flatnonzero(late & moving[waits.semaphore] & (waits.instruction < first_reset[waits.semaphore]))
    if len(open_waits):
        row = int(open_waits[0])
        name, semaphore = program.names[int(waits.instruction[row])], program.semaphores[int(waits.semaphore[row])]
        reason = f"{name!r} waits for a count of semaphore {semaphore} that depends on how often an earlier loop runs"
        raise Refused("loop-trip-count", reason)


def refuse_uneven_iterations(order: Order, *, semaphores: bool) -> None:
    """Raises Refused when an engine must run further ahead of another one than the unrolling allows for."""
    lines = order.timelines
    program = lines.program
    if not semaphores:
        return
    for number, loop in enumerate(program.loops):
        if program.loops[number].trips == lines.trips[number]:
            continue
        inside = loop_instructions(program, loop)
        steps = np.flatnonzero((lines.instruction >= inside.start) & (lines.instruction < inside.stop))
        for engine in range(len(program.engines)):
            reached = _iterations_reached(lines, order.clock[steps, engine], engine, inside)
            ahead = int((reached - lines.iteration[steps]).max(initial=0))
            if ahead > LARGEST_SKEW:
                reason = f"engine {program.engines[engine]} must run {ahead} iterations ahead of another one"
                raise Refused("loop-distance", reason)


def _iterations_reached(
    lines: Timelines, clock: npt.NDArray[np.int32], engine: int, inside: range
) -> npt.NDArray[np.int64]:
    """The iteration of the last step of an engine that a clock needs; -1 when that lies before the loop."""
    stream = lines.streams.values[lines.streams.starts[engine] : lines.streams.starts[engine + 1]]
    needed = (clock.astype(np.int64) + 2) // 3 - 1
    known = needed >= 0
    step = (
        stream[np.where(known, np.minimum(needed, max(len(stream) - 1, 0)), 0)]
        if len(stream)
        else np.zeros(len(clock), dtype=np.int64)
    )
    instruction = lines.instruction[step]
    here = known & (instruction >= inside.start) & (instruction < inside.stop)
    return np.where(here, lines.iteration[step], -1).astype(np.int64)
