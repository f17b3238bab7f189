"""What must hold between related programs, whatever the programs are."""

from __future__ import annotations

import random
from dataclasses import fields, replace
from typing import Any

import engine_programs as make
import numpy as np

from racefree.engines.check import Options, check
from racefree.engines.order import QueueOrder
from racefree.engines.program import AccessFlag, EngineProgram
from racefree.verdict import Status

Pair = tuple[int, int]


def _races(program: EngineProgram, order: str, queue_order: QueueOrder = QueueOrder.IGNORED) -> set[Pair] | None:
    """Racing pairs of instructions, or None where nothing is claimed."""
    verdict = check(program, order=order, options=Options(limit=10_000, repair=False, queue_order=queue_order)).orders[
        0
    ]
    if verdict.status is Status.UNSUPPORTED:
        return None
    return {(race.first.instruction, race.second.instruction) for race in verdict.races}


def _without(table: Any, row: int) -> Any:
    return replace(table, **{column.name: np.delete(getattr(table, column.name), row) for column in fields(table)})


def test_taking_a_dependency_away_never_removes_a_race() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        program = make.random_program(rng, rng.randrange(4, 16), rng.randrange(2, 5))
        before = _races(program, "dependencies")
        assert before is not None
        for row in range(len(program.dependencies)):
            after = _races(replace(program, dependencies=_without(program.dependencies, row)), "dependencies")
            assert after is not None
            assert before <= after


def test_taking_a_wait_away_never_removes_a_race() -> None:
    compared = 0
    for seed in range(70):
        rng = random.Random(seed)
        program = make.random_program(rng, rng.randrange(4, 16), rng.randrange(2, 5), exact_waits=False)
        before = _races(program, "semaphores")
        if before is None:
            continue
        for row in range(len(program.waits)):
            after = _races(replace(program, waits=_without(program.waits, row)), "semaphores")
            assert after is not None
            assert before <= after
            compared += 1
    assert compared > 40


def test_assuming_more_of_queues_never_adds_a_race() -> None:
    for seed in range(40):
        rng = random.Random(seed)
        program = make.random_program(rng, rng.randrange(4, 20), rng.randrange(1, 5), exact_waits=False)
        for order in ("dependencies", "semaphores"):
            levels = [_races(program, order, level) for level in QueueOrder]
            if None not in levels:
                assert levels[0] >= levels[1] >= levels[2]  # type: ignore[operator]


def test_reading_only_is_ok() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        program = make.random_program(rng, 20, 4)
        reads = replace(program.accesses, flags=program.accesses.flags & ~np.uint8(AccessFlag.WRITE))
        assert _races(replace(program, accesses=reads), "dependencies") == set()


def test_one_engine_without_transfers_is_ok() -> None:
    for seed in range(20):
        program = make.random_program(random.Random(seed), 20, 1)
        rows = program.instructions
        instructions = replace(rows, flags=np.zeros_like(rows.flags), queue=np.full_like(rows.queue, -1))
        assert _races(replace(program, instructions=instructions), "dependencies") == set()


def test_renaming_engines_changes_nothing() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        program = make.random_program(rng, 20, 4)
        moved = (program.instructions.engine + 1) % 4
        renamed = replace(program, instructions=replace(program.instructions, engine=moved.astype(np.int32)))
        for order in ("dependencies", "semaphores"):
            assert _races(program, order) == _races(renamed, order)
