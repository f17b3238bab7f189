"""The fast engine, the specified checker and brute force must agree on random programs, in both directions."""

from __future__ import annotations

import random

import engine_programs as make
import pytest

from racefree.engines import loops, semaphores
from racefree.engines.check import Options, check
from racefree.engines.dependencies import dependency_order
from racefree.engines.footprints import conflicts
from racefree.engines.order import QueueOrder
from racefree.engines.program import EngineProgram, WaitMode
from racefree.engines.reference import brute, checker
from racefree.engines.semaphores import Deadlock, semaphore_order
from racefree.engines.timeline import unroll
from racefree.errors import Refused
from racefree.verdict import Status

QUEUES = [(QueueOrder.IGNORED, False), (QueueOrder.COMPLETION, True)]
BATCHES = range(10)


@pytest.mark.parametrize("batch", BATCHES)
def test_dependency_order(batch: int) -> None:
    hazards = 0
    for seed in range(100 * batch, 100 * batch + 100):
        rng = random.Random(seed)
        program = make.random_program(rng, rng.randrange(2, 30), rng.randrange(1, 5))
        met = conflicts(program)
        for assumed, queues in QUEUES:
            expected = brute.hazards(program, brute.dependency_before(program, queues=queues))
            order = dependency_order(unroll(program), queue_order=assumed)
            assert make.found_hazards(order, met) == expected, seed
            hazards += len(expected)
    assert hazards > 100


@pytest.mark.parametrize("batch", BATCHES)
def test_semaphore_order_against_every_execution(batch: int) -> None:
    decided = hazards = 0
    for seed in range(30 * batch, 30 * batch + 30):
        rng = random.Random(seed)
        program = make.random_program(rng, rng.randrange(2, 9), rng.randrange(1, 4))
        met = conflicts(program)
        for assumed, queues in QUEUES:
            explored = brute.explore(program, queues=queues)
            try:
                order = semaphore_order(unroll(program), queue_order=assumed).order
            except Deadlock:
                assert not explored.finishes, seed
                continue
            except Refused:
                assert (program.waits.mode == WaitMode.EQUAL).any()
                continue
            assert explored.finishes, seed
            expected = brute.hazards(program, explored.before)
            assert make.found_hazards(order, met) == expected, seed
            decided += 1
            hazards += len(expected)
    assert decided > 20
    assert hazards > 0


@pytest.mark.parametrize("batch", BATCHES)
def test_fixed_waits_against_every_execution(batch: int) -> None:
    """Programs synchronised as compilers do it: most are decided as a graph, and none differently from the simulation."""
    fixed = hazards = 0
    for seed in range(20 * batch, 20 * batch + 20):
        rng = random.Random(seed)
        program = make.random_pipeline(rng, rng.randrange(2, 9), rng.randrange(1, 4))
        met = conflicts(program)
        for assumed, queues in QUEUES:
            explored = brute.explore(program, queues=queues)
            solved = semaphore_order(unroll(program), queue_order=assumed)
            expected = brute.hazards(program, explored.before)
            assert explored.finishes
            assert make.found_hazards(solved.order, met) == expected, seed
            fixed += solved.fixed is not None and solved.fixed.order(assumed) is not None
            hazards += len(expected)
    assert fixed > 30
    assert hazards > 0


def test_fixed_waits_of_longer_programs() -> None:
    """The graph and the simulation give one order, and not every program is a graph."""
    fixed = []
    for seed in range(20):
        rng = random.Random(seed)
        program = make.random_pipeline(rng, 60, rng.randrange(2, 6))
        met, lines = conflicts(program), unroll(program)
        for assumed, queues in QUEUES:
            solved = semaphore_order(lines, queue_order=assumed)
            simulated = semaphores._simulated(lines, solved.counters, solved.order.sequence, assumed)
            found = make.found_hazards(solved.order, met)
            assert found == make.found_hazards(simulated, met)
            fixed.append(solved.fixed is not None and solved.fixed.order(assumed) is not None)
            if seed < 3:
                assert found == brute.hazards(program, brute.semaphore_before(program, queues=queues))
    assert 20 < sum(fixed) < len(fixed)


@pytest.mark.parametrize("batch", BATCHES)
def test_resets_against_every_execution(batch: int) -> None:
    decided = 0
    for seed in range(30 * batch, 30 * batch + 30):
        rng = random.Random(seed)
        program = make.random_program_with_resets(rng, rng.randrange(4, 11), rng.randrange(1, 4))
        try:
            order = semaphore_order(unroll(program)).order
        except Refused:
            continue
        explored = brute.explore(program)
        assert explored.finishes, seed
        assert make.found_hazards(order, conflicts(program)) == brute.hazards(program, explored.before), seed
        decided += int((program.updates.mode != 0).any())
    assert decided > 0


@pytest.mark.parametrize("seed", range(25))
def test_semaphore_order_of_longer_programs(seed: int) -> None:
    rng = random.Random(1000 + seed)
    program = make.random_program(rng, 40, 3, exact_waits=False, barriers=0.05)
    try:
        order = semaphore_order(unroll(program)).order
    except Deadlock:
        assert len(brute._reachable_without(brute.Machine(program), ("done", -1))) < len(program)
        return
    assert make.found_hazards(order, conflicts(program)) == brute.hazards(program, brute.semaphore_before(program))
    assert not brute.violations(program, _before(order), random.Random(seed), runs=3)


def _before(order: object) -> brute.Before:
    return lambda a, b, writes: (order.completed_before if writes else order.read_before)(a, b)  # type: ignore[attr-defined]


@pytest.mark.parametrize("batch", BATCHES)
def test_specified_checker(batch: int) -> None:
    """With the compiler's exemptions, the fast engine reports the pairs that the specified checker reports."""
    races = 0
    for seed in range(60 * batch, 60 * batch + 60):
        rng = random.Random(seed)
        program = make.random_program(rng, rng.randrange(2, 30), rng.randrange(1, 5), barriers=0, compiler_flags=True)
        expected = {(race.first, race.second) for race in checker.collect(program)}
        verdict = check(program, options=Options(compiler_exemptions=True, limit=10_000))
        assert {(r.first.instruction, r.second.instruction) for r in verdict.orders[0].races} == expected, seed
        if expected:
            with pytest.raises(checker.DataRace):
                checker.check(program)
        else:
            checker.check(program)
        races += len(expected)
    assert races > 30


@pytest.mark.parametrize("semaphores", [False, True])
def test_loops_against_longer_runs(semaphores: bool) -> None:
    """What races in a long run of a loop races in the few iterations that are looked at."""
    decided = 0
    for seed in range(120):
        rng = random.Random(seed)
        program = make.random_loop(rng, rng.randrange(1, 4))
        try:
            trips = loops.semaphore_trips(program) if semaphores else loops.dependency_trips(program)
            found: set[tuple[int, int]] = set()
            for times in trips:
                found |= _racing_rows(program, times, semaphores)
            longer = [_racing_rows(program, (count,), semaphores) for count in (3, 4, max(max(trips)) + 3)]
        except Refused:
            continue
        assert all(rows <= found for rows in longer), seed
        decided += 1
    assert decided >= (30 if semaphores else 120)


def _racing_rows(program: EngineProgram, trips: tuple[int, ...], semaphores: bool) -> set[tuple[int, int]]:
    lines = unroll(program, trips)
    order = semaphore_order(lines).order if semaphores else dependency_order(lines)
    loops.refuse_uneven_iterations(order, semaphores=semaphores)
    return {(hazard.first_access, hazard.second_access) for hazard in _hazards(order, program)}


def _hazards(order: object, program: EngineProgram) -> set[brute.Hazard]:
    from racefree.engines.scan import racing_accesses

    rows = racing_accesses(order, conflicts(program)).rows  # type: ignore[arg-type]
    swapped = [(a, x, b, y) if a < b else (b, y, a, x) for a, x, b, y in rows.tolist()]
    return {brute.Hazard(a, b, x, y) for a, x, b, y in swapped}


def test_check_reports_what_brute_force_finds() -> None:
    """The verdict of the whole checker: status, pairs, and a set of edges that is enough and has none to spare."""
    for seed in range(150):
        rng = random.Random(seed)
        program = make.random_program(rng, rng.randrange(2, 14), rng.randrange(1, 4), barriers=0.1)
        verdict = check(program, order="dependencies").orders[0]
        hazards = brute.hazards(program, brute.dependency_before(program))
        assert verdict.status is (Status.RACES if hazards else Status.OK)
        pairs = {(hazard.first, hazard.second) for hazard in hazards}
        assert {(race.first.instruction, race.second.instruction) for race in verdict.races} == pairs
        index = {name: at for at, name in enumerate(program.names)}
        edges = [(index[edge.source], index[edge.target]) for edge in verdict.missing_edges]
        assert not _hazards_with(program, edges)
        for left_out in edges:
            assert _hazards_with(program, [edge for edge in edges if edge != left_out])


def _hazards_with(program: EngineProgram, edges: list[tuple[int, int]]) -> set[brute.Hazard]:
    from dataclasses import replace

    import numpy as np

    from racefree.engines.program import Dependencies

    rows = program.dependencies
    more = np.array(edges, dtype=np.int32).reshape(-1, 2)
    dependencies = Dependencies(
        np.concatenate([rows.source, more[:, 0]]),
        np.concatenate([rows.target, more[:, 1]]),
        np.concatenate([rows.kind, np.full(len(more), 4, dtype=np.uint8)]),
        np.concatenate([rows.distance, np.zeros(len(more), dtype=np.int32)]),
    )
    repaired = replace(program, dependencies=dependencies)
    return brute.hazards(repaired, brute.dependency_before(repaired))
