"""One protection taken away at a time: a mutant that races is never proved, one that does not is never reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_files import Entry
from matrix import cells, proved_entries
from mutating import OPERATORS, mutants

from racefree.proof.rungs import Options

INTERLEAVINGS = 100
"""Of a launch whose atomics order it; `matrix.py` goes through more, and tries proofs about such kernels on other grids."""


@pytest.mark.parametrize("entry", proved_entries(), ids=lambda e: e.name)
def test_every_mutant_is_judged_rightly(entry: Entry, tmp_path: Path) -> None:
    options = Options(scope="launch" if entry.synchronises else "any")
    for cell in cells(entry, tmp_path, options, interleavings=INTERLEAVINGS):
        assert cell.found is not None, f"{cell.mutant.source} does not compile"
        assert not cell.found.wrong, (cell.mutant, cell.found)
        assert cell.found.said.split(" ")[0] in ("ok", "races"), (cell.mutant, cell.found)


def test_every_operator_applies_somewhere() -> None:
    found = {m.operator for entry in proved_entries() for m in mutants(entry.path.read_text())}
    assert found == set(OPERATORS)
