"""Kernels whose atomics order the launch, against their interleavings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from corpus_files import Entry, entries, launch, load
from exploring import explore
from interleaving import find_race
from judging import prepared, write_module
from kernels import Kernel, TensorSpec
from synchronising import LANES, generate_synchronising

from racefree.graph.program import accesses
from racefree.proof import rungs
from racefree.proof.rungs import Options, decide
from racefree.proof.symbolic_rungs import strengthen
from racefree.verdict import ProofScope

ENTRIES = entries(synchronising=True)
ENOUGH = 80


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_verdict_and_interleavings_say_what_the_header_says(entry: Entry, monkeypatch: pytest.MonkeyPatch) -> None:
    program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
    explored = explore(program, facts, limit=ENOUGH)
    random = find_race(program, facts, seed=0, rounds=40 if entry.expect.status == "races" else 6)
    assert explored.status in (entry.expect.status, "unknown")
    assert (random is not None) == (entry.expect.status == "races")
    lines = {a.index: a.site.line for a in accesses(program)}
    for found in (explored.race, random):
        if found is not None:
            assert tuple(sorted(lines[index] for index in found)) in {pair[:2] for pair in entry.expect.pairs}
    for many in (rungs.MANY_PROGRAMS, 0):  # of a few instances, some may be run by themselves too
        monkeypatch.setattr(rungs, "MANY_PROGRAMS", many)
        verdict = decide(program, facts, Options(scope="launch"))
        assert verdict.status.value == entry.expect.status, verdict.refusal
        for race in verdict.races:
            first, second = sorted((race.first.source[1], race.second.source[1]))
            assert (first, second, "WAW" if race.race_type == "WAW" else "RW") in entry.expect.pairs


@pytest.mark.parametrize("entry", [e for e in ENTRIES if e.any_grid is not None], ids=lambda e: e.name)
def test_other_grids(entry: Entry) -> None:
    """What a header says of all grids is proved for all grids, and no interleaving of the next ones contradicts it."""
    assert entry.any_grid == "ok"
    program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
    verdict = decide(program, facts, Options(budget=5.0))
    assert verdict.scope in (ProofScope.ANY_PARAMS_ANY_GRID, ProofScope.THIS_PARAMS_ANY_GRID)
    for programs in (1, 2, 4):
        assert find_race(program, replace(facts, grid=(programs, 1, 1)), seed=0, rounds=6) is None


def test_random_protocols(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernels = [generate_synchronising(seed) for seed in range(14)]
    module = write_module(tmp_path / "protocols.py", kernels)
    answers = []
    for kernel in kernels:
        program, facts, _alive = prepared(kernel, module)
        said = decide(program, facts, Options(scope="launch")).status.value
        with monkeypatch.context() as patched:
            patched.setattr(rungs, "MANY_PROGRAMS", 0)
            assert decide(program, facts, Options(scope="launch")).status.value == said
        found = explore(program, facts, limit=ENOUGH)
        assert found.status in (said, "unknown"), (kernel.source(), found)
        answers.append(said)
    assert set(answers) == {"ok", "races"}


def test_random_protocols_for_any_grid(tmp_path: Path) -> None:
    """A proof for any grid holds at each grid of which all interleavings are known."""
    kernels = [_roomy(generate_synchronising(seed)) for seed in range(30, 44)]
    module = write_module(tmp_path / "roomy_protocols.py", kernels)
    proved = 0
    for kernel in kernels:
        program, facts, _alive = prepared(kernel, module)
        if strengthen(program, facts, decided=True, scale=5.0).status != "proved":
            continue
        proved += 1
        for programs in (1, 2, 4):
            found = explore(program, replace(facts, grid=(programs, 1, 1)), limit=ENOUGH)
            assert found.status != "races", (kernel.source(), programs)
    assert proved >= 3


def _roomy(kernel: Kernel) -> Kernel:
    """The same kernel with tensors that more programs fit in."""
    tensors = {name: TensorSpec("int32", 8 * LANES, values=(0,) * (8 * LANES)) for name in kernel.tensors}
    return replace(kernel, tensors=tensors)
