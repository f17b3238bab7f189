"""What is said and what is true of every mutant of every proved corpus kernel; as a script, prints the matrix.

`python tests/soundness/matrix.py [NAME ...]`. The truth is enumeration's, and where atomics order the launch that of all its
interleavings; a proof for any grid is held against other grids too.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from comparing import Comparison, compare_launch
from corpus_files import Entry, entries, launch, load
from exploring import explore
from judging import Judged, judge
from lowering import CompileFailed
from mutating import OPERATORS, Mutant, mutants, write_mutant

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program, accesses
from racefree.proof.rungs import Options

INTERLEAVINGS = 3000
MOST_PROGRAMS = 4
"""Of the other grids on which a proof about a kernel that synchronises is tried."""

FEWER = 60
"""By how much fewer interleavings are tried on grids larger than the launch's: each takes longer, too."""

MARGIN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Cell:
    """One mutant of one kernel; `found` is None when Triton does not compile it."""

    entry: Entry
    mutant: Mutant
    found: Comparison | None


def proved_entries() -> list[Entry]:
    """Corpus files whose launch is clean."""
    every = [*entries(synchronising=False), *entries(synchronising=True)]
    return [e for e in every if e.expect.status == "ok"]


def cells(
    entry: Entry, folder: Path, options: Options, *, interleavings: int = INTERLEAVINGS, grids: int = 6
) -> Iterator[Cell]:
    """All mutants of a kernel. `interleavings` bounds the search for the truth of one launch, `grids` its programs."""
    for mutant in mutants(entry.path.read_text()):
        path = write_mutant(folder, f"{entry.name}_{mutant.name}", mutant.source)
        try:
            program, facts, _alive = launch(load(path), entry.grid, entry.num_warps, margin_bytes=MARGIN_BYTES)
        except CompileFailed:
            yield Cell(entry, mutant, None)
            continue
        truth_of = partial(truth, interleavings=interleavings, home=prod(facts.grid))
        most = min(grids, MOST_PROGRAMS) if entry.synchronises else grids
        yield Cell(entry, mutant, compare_launch(program, facts, options, truth_of, grids=most))


def truth(program: Program, facts: LaunchFacts, *, interleavings: int, home: int) -> Judged:
    """Enumeration knows no order between programs: what it finds clean is clean, what it finds racy atomics may order.

    A grid of more programs than `home` has too many interleavings to go through all of them.
    """
    plain = judge(program, facts)
    settled = plain.status == "ok" or not any(a.kind.atomic for a in accesses(program))
    if settled and plain.status != "unknown":
        return plain
    explored = explore(program, facts, limit=interleavings if prod(facts.grid) <= home else interleavings // FEWER)
    races = () if explored.race is None else (explored.race,)
    return Judged(explored.status, f"{explored.interleavings} interleavings", races)


def _symbol(cell: Cell) -> str:
    found = cell.found
    if found is None:
        return "-"
    said = {"ok": "ok", "races": "R", "unsupported": "?"}.get(found.said.split(" ")[0], found.said)
    grid = "*" if "any-grid" in found.said else ""
    mark = "!!" if found.wrong else "" if found.truth == found.said.split(" ")[0] else f"({found.truth})"
    return f"{said}{grid}{mark}"


def table(found: Sequence[Cell]) -> Iterator[str]:
    """A line for each kernel, a column for each operator, one mark for each place the operator applies to."""
    rows: dict[str, dict[str, list[str]]] = {}
    for cell in found:
        rows.setdefault(cell.entry.name, {}).setdefault(cell.mutant.operator, []).append(_symbol(cell))
    text = {name: [" ".join(row.get(operator, ())) or "." for operator in OPERATORS] for name, row in rows.items()}
    names = max(map(len, text), default=0)
    widths = [max(len(o), *(len(row[i]) for row in text.values())) for i, o in enumerate(OPERATORS)]
    yield " ".join([" " * names, *(o.ljust(w) for o, w in zip(OPERATORS, widths, strict=True))]).rstrip()
    for name, row in text.items():
        yield " ".join([name.ljust(names), *(c.ljust(w) for c, w in zip(row, widths, strict=True))]).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("names", nargs="*", help="corpus files; all that are proved by default")
    parser.add_argument("--interleavings", type=int, default=INTERLEAVINGS)
    parser.add_argument("--grids", type=int, default=6)
    parser.add_argument("--strict", action="store_true")
    options = parser.parse_args()
    found: list[Cell] = []
    with tempfile.TemporaryDirectory() as folder:
        for entry in proved_entries():
            if not options.names or entry.name in options.names:
                how = Options(lanes="strict" if options.strict else "default")
                began = time.process_time()
                found += cells(entry, Path(folder), how, interleavings=options.interleavings, grids=options.grids)
                sys.stderr.write(f"{entry.name}: {time.process_time() - began:.1f} s\n")
    out = sys.stdout
    out.write("R races, ok proved, ok* for any grid, ? no claim, - does not compile, (x) what is true, !! wrong\n")
    out.writelines(f"{line}\n" for line in table(found))
    for cell in found:
        if cell.found is not None and cell.found.wrong:
            out.write(f"{cell.entry.name} {cell.mutant.name} line {cell.mutant.line}: {cell.found.wrong}\n")
            out.write(f"{cell.found.detail[:500]}\n{cell.mutant.source}\n")
    counted = Counter(c.found.kind if c.found is not None else "does not compile" for c in found)
    out.writelines(f"{number:5d} {kind}\n" for kind, number in sorted(counted.items()))


if __name__ == "__main__":
    main()
