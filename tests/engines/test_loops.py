"""Races between iterations, whatever their distance, and what about loops is refused."""

from __future__ import annotations

import engine_programs as make
import pytest

from racefree.engines.check import check
from racefree.engines.program import EngineProgram, UpdateMode
from racefree.engines.timeline import unroll
from racefree.verdict import Status


def _double_buffer(*, carried: bool) -> EngineProgram:
    """A loop that loads on one engine and uses on another; the next load has to wait for the last use."""
    builder = make.Maker()
    builder.loop(builder.block("body"), 1)
    load = builder.step("load", "SP", writes="a")
    use = builder.step("use", "PE", reads="a", after=(load,))
    if carried:
        builder.depends(load, use, distance=1)
    return builder.build()


def test_a_carried_dependency_orders_the_next_iteration() -> None:
    assert check(_double_buffer(carried=True)).status is Status.OK


def test_without_it_the_next_load_races_with_the_use() -> None:
    (race,) = check(_double_buffer(carried=False)).orders[0].races
    assert (race.first.name, race.second.name, race.distance, race.race_type) == ("use", "load", 1, "WAR")
    assert (race.first.iteration, race.second.iteration) == (0, 1)
    assert [
        (edge.source, edge.target, edge.distance)
        for edge in check(_double_buffer(carried=False)).orders[0].missing_edges
    ] == [("use", "load", 1)]


def _counting_loop(*, reset: bool, trips: int | None = None) -> EngineProgram:
    builder = make.Maker()
    builder.loop(builder.block("body"), 1, trips=trips)
    engines = [builder.engine(e) for e in ("SP", "PE")]
    load = builder.step("load", "SP", writes="a", updates=(("full", 1),))
    use = builder.step("use", "PE", reads="a", after=(load,))
    builder.wait(use, builder.semaphore("full"), 1, producer=load)
    if reset:
        builder.barrier("before", "Barrier", engines)
        builder.update(builder.step("reset", "SP"), builder.semaphore("full"), 0, mode=UpdateMode.SET)
        builder.barrier("after", "Barrier", engines)
    return builder.build()


def test_counts_that_go_on_make_the_wait_stale_from_the_second_iteration() -> None:
    verdict = check(_counting_loop(reset=False), order="semaphores")
    pairs = {(race.first.name, race.second.name, race.distance) for race in verdict.orders[0].races}
    assert ("load", "use", 0) in pairs
    assert next(one.kind for one in verdict.disagreements if one.producer == "load") == "stale-after-loop"


def test_a_reset_between_barriers_keeps_it_fresh() -> None:
    verdict = check(_counting_loop(reset=True), order="semaphores")
    assert verdict.status is Status.OK
    assert verdict.disagreements == ()


def test_a_loop_that_runs_once_has_no_second_iteration() -> None:
    assert check(_counting_loop(reset=False, trips=1), order="semaphores").status is Status.OK


def test_a_transfer_of_one_iteration_meets_a_use_several_iterations_later() -> None:
    """Counts that are behind by two: the wait of iteration i is satisfied by transfers up to iteration i + 2."""
    builder = make.Maker()
    builder.loop(builder.block("body"), 1)
    builder.step("load", "SP", writes="a", queue="q", updates=(("s", 1),))
    builder.step("use", "PE", reads="a", waits=(("s", 3),))
    verdict = check(builder.build(), order="semaphores")
    assert [refusal.kind for refusal in verdict.refusals] == ["semaphore-deadlock"]


def test_several_blocks_in_one_loop() -> None:
    builder = make.Maker()
    builder.block("entry")
    builder.step("before", "SP", writes="b")
    first = builder.block("head")
    load = builder.step("load", "SP", writes="a")
    builder.block("tail")
    builder.step("use", "PE", reads="a", after=(load,))
    builder.block("exit")
    builder.step("after", "PE", writes="b")
    builder.loop(first, first + 2)
    races = check(builder.build()).orders[0].races
    assert [(race.first.name, race.second.name, race.distance) for race in races] == [("use", "load", 1)]


def test_what_a_loop_touches_races_with_what_is_still_under_way_before_it() -> None:
    builder = make.Maker()
    builder.block("entry")
    builder.step("store", "SP", queue="q", reads="a")
    builder.loop(builder.block("body"), 2)
    builder.step("fill", "PE", writes="a")
    (race,) = check(builder.build()).orders[0].races
    assert (race.first.name, race.second.name) == ("store", "fill")


def test_a_count_after_a_loop_of_unknown_length_is_refused() -> None:
    builder = make.Maker()
    builder.loop(builder.block("body"), 1)
    builder.step("load", "SP", writes="a", updates=(("s", 1),))
    builder.block("exit")
    builder.step("use", "PE", reads="a", waits=(("s", 5),))
    program = builder.build()
    assert [refusal.kind for refusal in check(program, order="semaphores").refusals] == ["loop-trip-count"]


@pytest.mark.parametrize(("trips", "status"), [(5, Status.OK), (6, Status.RACES)])
def test_a_count_after_a_loop_of_known_length_is_exact(trips: int, status: Status) -> None:
    builder = make.Maker()
    builder.loop(builder.block("body"), 1, trips=trips)
    builder.step("load", "SP", writes="a", updates=(("s", 1),))
    builder.block("exit")
    builder.step("use", "PE", reads="a", waits=(("s", 5),))
    assert check(builder.build(), order="semaphores").status is status


def test_loops_in_loops_are_refused() -> None:
    builder = make.Maker()
    builder.block("outer")
    builder.block("inner")
    builder.step("one", "PE", writes="a")
    builder.loop(0, 2)
    builder.loop(1, 2)
    assert [refusal.kind for refusal in check(builder.build()).refusals] == ["nested-loop"]


def test_steps_spell_out_iterations() -> None:
    builder = make.Maker()
    builder.block("entry")
    builder.step("a", "PE")
    builder.block("body")
    builder.step("b", "PE")
    builder.step("c", "DVE", after=(0,))
    builder.block("exit")
    builder.step("d", "PE", after=(2,))
    builder.loop(1, 2)
    lines = unroll(builder.build(), (2,))
    assert [lines.program.names[i] for i in lines.instruction] == ["a", "b", "c", "b", "c", "d"]
    assert lines.iteration.tolist() == [0, 0, 0, 1, 1, 0]
    assert list(zip(lines.edge_source.tolist(), lines.edge_target.tolist(), strict=True)) == [(0, 2), (0, 4), (4, 5)]
