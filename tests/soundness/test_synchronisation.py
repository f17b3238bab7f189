"""Corpus files whose atomics order the launch, and their mutants, against random interleavings."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_files import Entry, entries, launch, load
from interleaving import find_race
from judging import prepared, write_module
from mutating import mutants, write_mutant
from synchronising import generate_synchronising

from racefree.graph.program import accesses
from racefree.proof.rungs import Options, decide

ENTRIES = entries(synchronising=True)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_verdict_and_interleavings_say_what_the_header_says(entry: Entry) -> None:
    program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
    rounds = 40 if entry.expect.status == "races" else 6
    found = find_race(program, facts, seed=0, rounds=rounds)
    assert (found is not None) == (entry.expect.status == "races")
    if found is not None:
        lines = {a.index: a.site.line for a in accesses(program)}
        assert tuple(sorted(lines[index] for index in found)) in {pair[:2] for pair in entry.expect.pairs}
    verdict = decide(program, facts, Options(scope="launch"))
    assert verdict.status.value == entry.expect.status, verdict.refusal
    for race in verdict.races:
        first, second = sorted((race.first.source[1], race.second.source[1]))
        assert (first, second, "WAW" if race.race_type == "WAW" else "RW") in entry.expect.pairs


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.expect.status == "ok"], ids=lambda e: e.name)
def test_no_mutant_that_races_is_proved(entry: Entry, tmp_path: Path) -> None:
    for name, number, source in mutants(entry.path.read_text()):
        path = write_mutant(tmp_path, f"{entry.name}_{name}_{number}".replace("-", "_"), source)
        program, facts, _alive = launch(load(path), entry.grid, entry.num_warps)
        said = decide(program, facts, Options(scope="launch")).status.value
        races = find_race(program, facts, seed=0, rounds=8) is not None
        assert said == ("races" if races else "ok"), (name, number, source)


def test_random_protocols(tmp_path: Path) -> None:
    kernels = [generate_synchronising(seed) for seed in range(14)]
    module = write_module(tmp_path / "protocols.py", kernels)
    answers = []
    for kernel in kernels:
        program, facts, _alive = prepared(kernel, module)
        said = decide(program, facts, Options(scope="launch")).status.value
        found = find_race(program, facts, seed=kernel.seed, rounds=30)
        assert said == ("ok" if found is None else "races"), (kernel.source(), found)
        answers.append(said)
    assert set(answers) == {"ok", "races"}
