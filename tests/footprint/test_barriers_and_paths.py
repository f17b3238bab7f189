"""Barriers count only where they are passed: under branches, in loops, in loops that some programs skip."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from program_builder import I1, I32, Kernel, launch, tensor

from racefree.graph.program import Value
from racefree.proof.footprint import evaluate
from racefree.proof.rungs import Options, decide
from racefree.verdict import ONE_THREAD_PER_LANE, RaceConfigVerdict, Status

LANES = 64


def reversed_lanes(kernel: Kernel, lane: Value) -> Value:
    return kernel.sub(kernel.const(LANES - 1, I32, (LANES,)), lane)


def write_then_read_back(between: Callable[[Kernel, Value], None], grid: int, **flags: object) -> RaceConfigVerdict:
    """Each program stores a tile, does `between`, and loads the tile with its lanes reversed."""
    kernel = Kernel()
    x = kernel.tensor("x")
    pid, lane = kernel.pid(), kernel.arange(LANES)
    base = kernel.mul(pid, LANES)
    kernel.store(kernel.at(x, kernel.add(lane, base)))
    between(kernel, pid)
    kernel.load(kernel.at(x, kernel.add(reversed_lanes(kernel, lane), base)))
    facts = launch(grid, x=tensor(1 << 20, LANES * grid), **flags)  # type: ignore[arg-type]
    return decide(kernel.program(), facts, Options(scope="launch"))


def barrier_where(lowest: int) -> Callable[[Kernel, Value], None]:
    def between(kernel: Kernel, pid: Value) -> None:
        with kernel.when(kernel.cmp("sge", pid, lowest)):
            kernel.barrier()

    return between


def barrier_loop_where(lowest: int, trips: int) -> Callable[[Kernel, Value], None]:
    def between(kernel: Kernel, pid: Value) -> None:
        with kernel.when(kernel.cmp("sge", pid, lowest)), kernel.loop(0, trips):
            kernel.barrier()

    return between


def barriers_in_both_loops(outer: int | None, inner: int) -> Callable[[Kernel, Value], None]:
    """`outer` None: as many as the program's id."""

    def between(kernel: Kernel, pid: Value) -> None:
        with kernel.loop(0, pid if outer is None else outer), kernel.loop(0, inner):
            kernel.barrier()

    return between


@pytest.mark.parametrize("lowest", [0, 1, 2])
def test_a_barrier_orders_only_the_programs_that_pass_it(lowest: int) -> None:
    found = write_then_read_back(barrier_where(lowest), grid=3)
    assert found.status is (Status.OK if lowest == 0 else Status.RACES)
    assert all(race.programs[0][0] < lowest for race in found.races)


@pytest.mark.parametrize("lowest", [0, 1, 2])
@pytest.mark.parametrize("trips", [0, 1, 4])
def test_a_loop_of_barriers_orders_only_the_programs_that_run_it(lowest: int, trips: int) -> None:
    found = write_then_read_back(barrier_loop_where(lowest, trips), grid=3)
    assert found.status is (Status.OK if lowest == 0 and trips else Status.RACES)


@pytest.mark.parametrize(("outer", "inner", "clean"), [(2, 3, True), (2, 0, False), (0, 3, False), (None, 3, False)])
def test_barriers_in_nested_loops(outer: int | None, inner: int, clean: bool) -> None:
    found = write_then_read_back(barriers_in_both_loops(outer, inner), grid=3)
    assert found.status is (Status.OK if clean else Status.RACES)


@pytest.mark.parametrize("flags", [(1, 1, 1, 1), (1, 0, 1, 0), (0, 1, 1, 1)])
def test_a_barrier_under_a_flag_read_from_memory(flags: tuple[int, ...]) -> None:
    def between(kernel: Kernel, pid: Value) -> None:
        flag = kernel.load(kernel.at(kernel.parameters[1].value, pid), element=I32)
        with kernel.when(kernel.cmp("ne", flag, 0)):
            kernel.barrier()

    kernel = Kernel()
    x, table = kernel.tensor("x"), kernel.tensor("flags")
    pid, lane = kernel.pid(), kernel.arange(LANES)
    base = kernel.mul(pid, LANES)
    kernel.store(kernel.at(x, kernel.add(lane, base)))
    between(kernel, pid)
    kernel.load(kernel.at(x, kernel.add(reversed_lanes(kernel, lane), base)))
    del table
    facts = launch(4, x=tensor(1 << 20, 4 * LANES), flags=tensor(1 << 30, 4, contents=flags))
    found = decide(kernel.program(), facts, Options(scope="launch"))
    assert found.status is (Status.OK if all(flags) else Status.RACES)
    assert all(not flags[race.programs[0][0]] for race in found.races)


@pytest.mark.parametrize("trips", [1, 4])
def test_barriers_under_a_condition_that_is_not_known_order_nothing(trips: int) -> None:
    kernel = Kernel()
    x, flag = kernel.tensor("x"), kernel.tensor("flag")
    lane = kernel.arange(LANES)
    condition = kernel.cmp("sgt", kernel.load(flag, element=I32), 0)
    kernel.store(kernel.at(x, lane))
    with kernel.when(condition), kernel.loop(0, trips):
        kernel.barrier()
    kernel.load(kernel.at(x, reversed_lanes(kernel, lane)))
    found = decide(kernel.program(), launch(1, x=tensor(1 << 20, 64), flag=tensor(1 << 30, 1)), Options(scope="launch"))
    assert found.status is Status.UNSUPPORTED
    assert found.refusal is not None
    assert found.refusal.kind == "potential-race"


def stencil_in_loop(*, first: bool, last: bool) -> RaceConfigVerdict:
    """Each iteration loads its neighbour's element and stores its own, with barriers before and after the store."""
    kernel = Kernel()
    x = kernel.tensor("x")
    lane = kernel.arange(LANES)
    with kernel.loop(0, 5):
        loaded = kernel.load(kernel.at(x, kernel.add(lane, 1)))
        if first:
            kernel.barrier()
        kernel.store(kernel.at(x, lane), loaded)
        if last:
            kernel.barrier()
    return decide(kernel.program(), launch(1, x=tensor(1 << 20, LANES + 1)), Options(scope="launch"))


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_a_loop_needs_a_barrier_on_both_sides_of_its_store(first: bool, last: bool) -> None:
    assert stencil_in_loop(first=first, last=last).status is (Status.OK if first and last else Status.RACES)


def handed_on(distance: int, trips: int) -> Status:
    """Iteration k stores tile k and, after a barrier, loads tile k - `distance` reversed: written since or long before."""
    kernel = Kernel()
    x = kernel.tensor("x")
    lane = kernel.arange(LANES)
    with kernel.loop(0, trips) as loop:
        here = kernel.mul(loop.index, LANES)
        kernel.store(kernel.at(x, kernel.add(lane, here)))
        kernel.barrier()
        there = kernel.sub(here, distance * LANES)
        kernel.load(kernel.at(x, kernel.add(reversed_lanes(kernel, lane), there)))
    return decide(kernel.program(), launch(1, x=tensor(1 << 20, 64 * LANES)), Options(scope="launch")).status


@pytest.mark.parametrize("distance", [-2, -1, 0, 1, 2])
def test_the_distance_between_iterations_decides(distance: int) -> None:
    # A load of the next tile meets the store of the next iteration in one epoch; all others have a barrier in between.
    assert handed_on(distance, trips=6) is (Status.RACES if distance == -1 else Status.OK)


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_store_repeated_by_a_loop_is_ordered_by_its_thread_alone(strict: bool, known: bool) -> None:
    kernel = Kernel()
    x, length = kernel.tensor("x"), kernel.tensor("length")
    lane = kernel.arange(LANES)
    trips = kernel.const(3) if known else kernel.load(length, element=I32)
    with kernel.loop(0, trips):
        kernel.store(kernel.at(x, lane))
    facts = launch(1, x=tensor(1 << 20, LANES), length=tensor(1 << 30, 1))
    found = decide(kernel.program(), facts, Options(lanes="strict" if strict else "default", scope="launch"))
    if strict:
        assert found.status is (Status.RACES if known else Status.UNSUPPORTED)
    else:
        assert found.status is Status.OK
        assert found.qualifiers == (ONE_THREAD_PER_LANE,)


def test_an_empty_loop_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluate, "STATEMENT_BUDGET", 1000)
    kernel = Kernel()
    x = kernel.tensor("x")
    endless, start = kernel.const(1, I1), kernel.const(0)
    loop = kernel.repeat([start])
    with loop.before():
        pass
    with loop.after():
        pass
    loop.close(endless, loop.before_args, loop.after_args)
    kernel.store(kernel.at(x, loop.results[0]))
    found = decide(kernel.program(), launch(2, x=tensor(1 << 20, LANES)), Options(scope="launch"))
    assert found.refusal is not None
    assert found.refusal.kind == "loop-budget"


@pytest.mark.parametrize("masked", [False, True])
def test_what_is_read_on_a_path_that_may_be_taken_is_known_there(masked: bool) -> None:
    """A lane that is perhaps masked off holds perhaps something else; a load that perhaps does not run has no say then."""
    k = Kernel()
    out, flags, table = k.tensor("out"), k.tensor("flags"), k.tensor("table")
    here = k.cmp("sgt", k.load(k.at(flags, k.pid()), element=I32), 0)
    with k.when(here):
        place = k.load(k.at(table, k.pid()), here if masked else None, k.const(0), element=I32)
        k.store(k.at(out, place))
    facts = launch(3, out=tensor(1 << 20, 8), flags=tensor(1 << 25, 3), table=tensor(1 << 26, 3, contents=[5, 2, 7]))
    found = decide(k.program(), facts, Options(scope="launch"))
    assert found.status is (Status.UNSUPPORTED if masked else Status.OK)
    twice = replace(facts, arguments={**facts.arguments, "table": tensor(1 << 26, 3, contents=[5, 2, 5])})
    assert decide(k.program(), twice, Options(scope="launch")).status is Status.UNSUPPORTED
