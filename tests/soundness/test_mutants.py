"""One protection taken away at a time: a mutant that races is never proved, one that does not is never reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_files import Entry, entries, launch, load
from judging import judge
from lowering import CompileFailed
from mutating import mutants, write_mutant

from racefree.errors import Refused
from racefree.proof.rungs import Options, decide

PROVED = [e for e in entries(synchronising=False) if e.expect.status == "ok"]


@pytest.mark.parametrize("entry", PROVED, ids=lambda e: e.name)
def test_mutants_are_judged_as_enumeration_judges_them(entry: Entry, tmp_path: Path) -> None:
    for name, number, source in mutants(entry.path.read_text()):
        path = write_mutant(tmp_path, f"{entry.name}_{name}_{number}".replace("-", "_"), source)
        try:
            program, facts, _alive = launch(load(path), entry.grid, entry.num_warps)
            said = decide(program, facts, Options(scope="launch")).status.value
        except CompileFailed:
            continue
        except Refused:
            said = "unsupported"
        truth = judge(program, facts).status
        if truth in ("ok", "races"):
            assert said == truth, (name, number, source)
