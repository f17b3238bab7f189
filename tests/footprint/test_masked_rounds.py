"""Rounds of tiles under a mask, too many to list: their loops are stepped, so that the lanes of each round are a range."""

from __future__ import annotations

import numpy as np
import pytest
from program_builder import I32, Kernel, launch, tensor
from test_random_programs import from_footprints, from_replay

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program
from racefree.proof.footprint import survey as surveying
from racefree.proof.footprint.shadow import Lattice
from racefree.proof.footprint.survey import Facts, prepare
from racefree.proof.replay.enumeration import Rules, enumerate_races
from racefree.proof.rungs import Options, decide
from racefree.verdict import Status

PROGRAMS, BLOCK, LENGTH = 12, 8, 21


def rows(stride: int, *, back: int = 0, shorter: bool = False, looked_up: bool = False) -> tuple[Program, LaunchFacts]:
    """Each program loads a row of `x` in rounds and stores it `back` elements before; `shorter`: not all rows are as long."""
    kernel = Kernel()
    x, table = kernel.tensor("x"), kernel.tensor("table")
    pid, lane = kernel.pid(), kernel.arange(BLOCK)
    length = kernel.sub(kernel.const(LENGTH), kernel.rem(pid, 3)) if shorter else kernel.const(LENGTH)
    with kernel.loop(0, length, BLOCK) as loop:
        column = kernel.add(lane, loop.index)
        mask = kernel.cmp("slt", column, length)
        if looked_up:
            column = kernel.load(kernel.at(table, column), mask=mask, element=I32)
        at = kernel.at(x, kernel.add(column, kernel.mul(pid, stride)))
        kernel.load(at, mask=mask)
        kernel.store(kernel.at(at, -back), mask=mask)
    facts = launch(PROGRAMS, x=tensor(1 << 20, 1024), table=tensor(1 << 30, 64, 4, list(range(64))))
    return kernel.program(), facts


@pytest.fixture
def few_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Room for all rounds of three programs, not for those of all programs."""
    monkeypatch.setattr(surveying, "CHUNK_CELLS", 3 * 3 * BLOCK)


@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("shorter", [True, False])
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("back", [0, 1, BLOCK])
@pytest.mark.parametrize("stride", [LENGTH - 1, LENGTH, LENGTH + 1, LENGTH + BLOCK])
def test_verdicts_are_those_of_every_pair_of_executions(stride: int, back: int, strict: bool, shorter: bool) -> None:
    program, facts = rows(stride, back=back, shorter=shorter)
    found = decide(program, facts, Options(lanes="strict" if strict else "default", scope="launch"))
    racy = bool(enumerate_races(program, facts, Rules(strict_lanes=strict, cross_lanes=False)).races)
    assert found.status is (Status.RACES if racy else Status.OK)


@pytest.mark.usefixtures("few_cells")
@pytest.mark.parametrize("shorter", [True, False])
def test_all_programs_are_looked_at_together(shorter: bool) -> None:
    program, facts = rows(LENGTH, shorter=shorter)
    (chunk,) = surveying.survey(prepare(program, facts), Facts())
    assert len(chunk.programs) == PROGRAMS
    assert all(isinstance(part, Lattice) for part in chunk.may)
    assert from_footprints(program, facts) == from_replay(program, facts)


@pytest.mark.usefixtures("few_cells")
def test_where_it_does_not_help_loops_stay_whole() -> None:
    program, facts = rows(LENGTH, looked_up=True)
    chunks = list(surveying.survey(prepare(program, facts), Facts()))
    assert np.concatenate([chunk.programs for chunk in chunks]).tolist() == list(range(PROGRAMS))
    footprints = [footprint for chunk in chunks for footprint in chunk.footprints]
    assert footprints
    assert all(footprint.loops for footprint in footprints)
    assert from_footprints(program, facts) == from_replay(program, facts)
