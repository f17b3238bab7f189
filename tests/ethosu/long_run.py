"""More streams than the tests take, every single wait dropped: `python tests/ethosu/long_run.py FIRST LAST`."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from test_streams import pairs, verdict
from vela_brute import command_sequence, races
from vela_streams import make


def main(first: int, last: int) -> None:
    totals: Counter[str] = Counter()
    for seed in range(first, last):
        stream = make(seed)
        waits = [at for at, what, _ in command_sequence(stream.words) if what.endswith("wait")]
        for dropped in (None, *waits):
            words = tuple(word for at, word in enumerate(stream.words) if at != dropped)
            expected = races(words, stream.operations, stream.accelerator)
            kind = "stream" if dropped is None else "mutant"
            totals[kind] += 1
            totals[f"racing {kind}"] += bool(expected.races)
            if pairs(verdict(words, stream)) != expected:
                totals["different"] += 1
                sys.stderr.write(f"seed {seed}, dropped {dropped}: not as brute force says\n")
    sys.stderr.write(f"{dict(totals)}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
