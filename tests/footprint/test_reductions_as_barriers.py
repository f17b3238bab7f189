"""A block-wide reduction works as a barrier only for the programs that run it, and only where that is certain."""

from __future__ import annotations

from dataclasses import replace

import pytest
from program_builder import F32, I32, Kernel, launch, tensor

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Data, Program
from racefree.proof.rungs import Options, decide
from racefree.verdict import REDUCTIONS_SYNCHRONISE, Status

LANES = 128


def reversed_after_a_reduction(lowest: int, trips: int | None, *, evaluated: bool) -> tuple[Program, LaunchFacts]:
    """Programs from `lowest` on reduce the tile they loaded (in a loop of `trips`), then all store it reversed.

    `evaluated`: the branch also holds a store that has to be looked at.
    """
    kernel = Kernel()
    x = kernel.tensor("x")
    pid, lane = kernel.pid(), kernel.arange(LANES)
    base = kernel.mul(pid, LANES)
    loaded = kernel.load(kernel.at(x, kernel.add(lane, base)))

    def reduction() -> None:
        kernel.emit(Data("tt.reduce", (kernel.value(F32),), (loaded,), False, kernel.site()))

    with kernel.when(kernel.cmp("sge", pid, lowest)):
        if trips is None:
            reduction()
        else:
            with kernel.loop(0, trips):
                reduction()
        if evaluated:
            kernel.store(kernel.at(x, kernel.add(pid, 4000)))
    back = kernel.sub(kernel.const(LANES - 1, I32, (LANES,)), lane)
    kernel.store(kernel.at(x, kernel.add(back, base)))
    facts = replace(launch(2, num_warps=4, x=tensor(1 << 20, 4096)), target="cuda:80")
    return kernel.program(), facts


@pytest.mark.parametrize("lowest", [0, 1])
def test_a_reduction_orders_the_programs_that_run_it(lowest: int) -> None:
    found = decide(*reversed_after_a_reduction(lowest, None, evaluated=True), Options(scope="launch"))
    if lowest == 0:
        assert found.status is Status.OK
        assert REDUCTIONS_SYNCHRONISE in found.qualifiers
    else:
        assert found.status is Status.RACES
        assert {race.programs[0][0] for race in found.races} == {0}


@pytest.mark.parametrize("lowest", [0, 1])
@pytest.mark.parametrize("trips", [None, 3])
def test_a_reduction_that_was_not_looked_at_leaves_a_doubt(lowest: int, trips: int | None) -> None:
    found = decide(*reversed_after_a_reduction(lowest, trips, evaluated=False), Options(scope="launch"))
    assert found.refusal is not None
    assert found.refusal.kind == "potential-race"


@pytest.mark.parametrize("evaluated", [True, False])
def test_with_strict_lanes_no_reduction_orders(evaluated: bool) -> None:
    program, facts = reversed_after_a_reduction(0, None, evaluated=evaluated)
    assert decide(program, facts, Options(lanes="strict", scope="launch")).status is Status.RACES
