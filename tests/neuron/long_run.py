"""More programs and mutants than the tests take, on several cores: `python tests/neuron/long_run.py FIRST LAST [WORKERS]`.

Every program and every mutant is judged by brute force under both orders and by the readable reference; one in twenty has up
to 200 instructions. Prints how many documents of which sizes were judged, how the verdicts fall, and what the reference does
not cover.
"""

from __future__ import annotations

import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

from bir_judge import judge

from racefree.neuron.generate import Options, generate
from racefree.neuron.mutate import MUTATIONS, mutate


def options(seed: int) -> Options:
    size = 120 + seed % 80 if seed % 20 == 0 else 8 + seed % 50
    return Options(seed=seed, instructions=size, tiles=3 + seed % 6, partitions=8, row_bytes=64)


def one_program(seed: int) -> tuple[Counter[str], list[str]]:
    document = generate(options(seed))
    mutants = [mutate(document, name, seed) for name in MUTATIONS if name != "M10"]
    documents = [("program", document)] + [(one.mutation, one.document) for one in mutants if one is not None]
    totals: Counter[str] = Counter()
    wrong = []
    for name, each in documents:
        found = judge(each)
        totals["documents"] += 1
        totals[_size(each)] += 1
        totals["reference: compared" if not found.uncovered else f"reference: not {name}, {found.uncovered}"] += 1
        for order, verdict in found.found.items():
            totals[f"{name} {order} {verdict.status.value}"] += 1
        if found.differences:
            totals["different"] += 1
            wrong.append(f"seed {seed} {name}: {found.differences}")
    return totals, wrong


def _size(document: dict[str, Any]) -> str:
    (block,) = document["functions"][0]["blocks"]
    count = len(block["instructions"])
    return next(f"up to {most:3} instructions" for most in (25, 50, 100, 150, 200, 999) if count <= most)


def main(first: int, last: int, workers: int) -> None:
    totals: Counter[str] = Counter()
    with ProcessPoolExecutor(workers) as pool:
        for done, (counted, wrong) in enumerate(pool.map(one_program, range(first, last), chunksize=2), 1):
            totals += counted
            if done % 100 == 0:
                sys.stderr.write(f"{totals['documents']} documents, {totals['different']} different\n")
            for line in wrong:
                sys.stderr.write(line + "\n")
    sys.stderr.write("\n".join(f"{key}: {totals[key]}" for key in sorted(totals)) + "\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1)
