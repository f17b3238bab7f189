"""One protection taken away at a time: a mutant that races is never proved, one that does not is never reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from corpus_files import Entry
from matrix import cells, proved_entries

from racefree.proof.rungs import Options

MANY_INTERLEAVINGS = 200
ANY_GRID_EVERY = 9


@pytest.mark.parametrize("entry", proved_entries(), ids=lambda e: e.name)
def test_every_mutant_is_judged_rightly(entry: Entry, tmp_path: Path) -> None:
    mutants = 0
    for cell in cells(entry, tmp_path, Options(scope="launch"), interleavings=MANY_INTERLEAVINGS):
        assert cell.found is not None, f"{cell.mutant.source} does not compile"
        assert not cell.found.wrong, (cell.mutant, cell.found)
        assert cell.found.said.split(" ")[0] in ("ok", "races"), (cell.mutant, cell.found)
        mutants += 1
    assert mutants > 0
