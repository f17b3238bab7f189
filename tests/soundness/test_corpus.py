"""Every corpus file against enumeration: the launch, every racing pair of lines, and other grids."""

from __future__ import annotations

import pytest
from corpus_files import Entry, Expectation, Pairs, entries, launch, load
from judging import judge, other_grids

from racefree.graph.program import Program, accesses
from racefree.proof.confirm import CONFIRMED
from racefree.proof.handed_results import with_result_barriers
from racefree.proof.replay import Race, Where, confirm, enumerate_races
from racefree.proof.replay.enumeration import Rules
from racefree.proof.rungs import Options, WantedScope, decide
from racefree.verdict import THREAD_QUALIFIERS, ProofScope, Status

ENTRIES = entries(synchronising=False)


def pairs_of(program: Program, races: tuple[Race, ...]) -> Pairs:
    lines = {a.index: a.site.line for a in accesses(program)}
    found = set()
    for race in races:
        a, b = sorted((lines[race.first.access], lines[race.second.access]))
        found.add((a, b, "WAW" if race.race_type == "WAW" else "RW"))
    return frozenset(found)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_enumeration_finds_what_the_header_says(entry: Entry) -> None:
    program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
    program = with_result_barriers(program)
    for strict, expected in ((False, entry.expect), (True, entry.strict)):
        found = enumerate_races(program, facts, Rules(strict_lanes=strict))
        assert not found.out_of_bounds
        assert Expectation("races" if found.races else "ok", pairs_of(program, found.races)) == expected
        for race in found.races:
            assert confirm(program, facts, race.first, race.second)
            elsewhere = (facts.grid[0], 0, 0)
            gone = Where(race.first.access, elsewhere, race.first.iterations, race.first.lane)
            assert not confirm(program, facts, gone, race.second)


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.any_grid is not None], ids=lambda e: e.name)
def test_other_grids(entry: Entry) -> None:
    from dataclasses import replace

    program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
    grids = [facts.grid, *other_grids(program, facts.grid)]
    answers = {judge(program, replace(facts, grid=grid)).status for grid in grids}
    if entry.any_grid == "races":
        assert "races" in answers
    else:
        assert answers <= {"ok", "doubtful"}
        assert "ok" in answers


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_verdict_is_what_the_header_says(entry: Entry) -> None:
    """Every racing pair that is told races; a proof for any grid is one only where no other grid races."""
    program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
    verdict = decide(program, facts, Options())
    assert verdict.status.value == entry.expect.status, verdict.refusal
    told = {
        (*sorted((r.first.source[1], r.second.source[1])), "WAW" if r.race_type == "WAW" else "RW")
        for r in verdict.races
    }
    assert told <= entry.expect.pairs
    assert all(race.witness == CONFIRMED for race in verdict.races)
    if entry.any_grid == "races" and verdict.status is Status.OK:
        assert verdict.scope is ProofScope.THIS_PARAMS_THIS_GRID


@pytest.mark.parametrize("scope", ["launch", "any"])
@pytest.mark.parametrize("entry", ENTRIES + entries(synchronising=True), ids=lambda e: e.name)
def test_a_proof_that_assumes_nothing_about_threads_needs_nothing(entry: Entry, scope: WantedScope) -> None:
    program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
    found = decide(program, facts, Options(scope=scope))
    if found.status is Status.OK and not THREAD_QUALIFIERS & set(found.qualifiers):
        strict = decide(program, facts, Options(scope=scope, lanes="strict"))
        assert (strict.status, strict.scope) == (found.status, found.scope)
