"""Tables of what is proved about saved launches: kernel, rung, scope and processor seconds of the analysis after TTIR.

python benchmarks/proof_scopes.py FOLDER [--scope any|launch] [--budget FACTOR] [--only TEXT] [--output FILE.md]

`racefree check --save-launches FOLDER benchmarks/liger_operators.py` (or `fla_operators.py`) makes the folder. Equal launches
count once. Seconds are those of this process and of the processes that answer its questions, from the text of the TTIR to the
verdict, with imports and a warm-up launch left out; a launch of several configs counts the time of all of them.
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from racefree.analysis import Analyst
from racefree.config import Settings
from racefree.launch import Launch
from racefree.triton.saved import load_launch
from racefree.verdict import ProofScope, Status

UNBOUND = (ProofScope.ANY_PARAMS_ANY_GRID, ProofScope.THIS_PARAMS_ANY_GRID)


@dataclass(frozen=True, slots=True)
class Row:
    """One launch: its verdict in words, and what it cost on the processor and on the clock."""

    kernel: str
    configs: int
    status: Status
    rung: str
    scope: ProofScope | None
    said: str
    seconds: float
    elapsed: float


def children_seconds() -> float:
    """Processor time of the processes this one has started and not yet waited for, and of those it has (Linux)."""
    ended = os.times()
    total = ended.children_user + ended.children_system
    ticks = os.sysconf("SC_CLK_TCK")
    for listed in Path("/proc/self/task").glob("*/children"):
        for pid in listed.read_text().split():
            try:
                fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            total += (int(fields[11]) + int(fields[12])) / ticks
    return total


def measured(path: Path, settings: Settings) -> tuple[Launch, float, float]:
    """A saved launch decided by an analyst that knows nothing yet, with its seconds on the processor and on the clock."""
    captured = load_launch(path)
    analyst = Analyst(settings)
    gc.collect()
    elapsed, spent = time.perf_counter(), time.process_time() + children_seconds()
    launch = analyst.decide(captured).launch
    return launch, time.process_time() + children_seconds() - spent, time.perf_counter() - elapsed


def row(launch: Launch, seconds: float, elapsed: float) -> Row:
    verdict = launch.verdict
    rungs = sorted({c.rung for c in verdict.configs if c.rung is not None})
    refusals = sorted({f"{c.refusal.kind}: {c.refusal.reason}" for c in verdict.configs if c.refusal is not None})
    said = "; ".join(verdict.qualifiers if verdict.status is Status.OK else refusals)
    return Row(
        launch.kernel,
        len(verdict.configs),
        verdict.status,
        "+".join(rungs),
        verdict.scope,
        said,
        seconds,
        elapsed,
    )


def summary(rows: list[Row]) -> str:
    """How many launches were proved, for which scope, and how the processor seconds spread."""
    proved = [r for r in rows if r.status is Status.OK]
    unbound = sum(r.scope in UNBOUND for r in proved)
    scopes = Counter(r.scope.value for r in proved if r.scope is not None)
    seconds = sorted(r.seconds for r in rows)
    share = 100 * unbound / max(1, len(proved))
    spread = (seconds[len(seconds) // 2], seconds[int(0.95 * (len(seconds) - 1))], seconds[-1])
    told = ", ".join(f"{count} {scope}" for scope, count in sorted(scopes.items()))
    return (
        f"{len(rows)} different launches, {len(proved)} proved ({told}): {share:.0f}% of the proofs hold for any grid. "
        f"Processor seconds: median {spread[0]:.3f}, 95% {spread[1]:.3f}, slowest {spread[2]:.2f}; "
        f"longest on the clock {max(r.elapsed for r in rows):.2f}."
    )


def table(rows: list[Row]) -> str:
    """The launches as a Markdown table, slowest last within each kernel."""
    lines = [
        "| kernel | configs | answer | rung | scope | seconds | qualifiers or reasons |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in sorted(rows, key=lambda r: (r.kernel, r.seconds)):
        scope = "" if r.scope is None else r.scope.value
        lines.append(
            f"| {r.kernel} | {r.configs} | {r.status.value} | {r.rung} | {scope} | {r.seconds:.3f} | {r.said} |"
        )
    return "\n".join(lines)


def main() -> int:
    """Decide the launches one after the other; the summary goes to standard output, the table there or to a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scope", choices=("any", "launch"), default="any")
    parser.add_argument("--budget", type=float, default=1.0)
    parser.add_argument("--only", default="", help="only files whose name contains this")
    parser.add_argument("--output", type=Path, help="write the table to this file")
    options = parser.parse_args()
    paths = sorted(p for p in options.folder.glob("*.json") if options.only in p.name)
    if not paths:
        print(f"{options.folder} holds no saved launches", file=sys.stderr)
        return 2
    settings = Settings(scope=options.scope, budget=options.budget)
    measured(paths[0], settings)
    rows = [row(*measured(path, settings)) for path in paths]
    text = f"{summary(rows)}\n\n{table(rows)}\n"
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text, encoding="utf-8")
        print(summary(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
