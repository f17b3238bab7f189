"""Compares many generated kernels by hand: `python tests/soundness/long_run.py FIRST LAST [--strict] [--reduce]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent))

from comparing import Comparison, compare, compare_strengthened
from generation import generate
from judging import write_module
from kernels import Kernel, TensorSpec
from reducing import reduced

from racefree.proof.rungs import WantedScope

BATCH = 50


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def outcomes_of(
    kernel: Kernel, module: ModuleType, *, strict: bool, symbolic: bool, scope: WantedScope
) -> list[Comparison]:
    try:
        if symbolic:
            return [compare_strengthened(kernel, module, strict_lanes=strict)]
        return compare(kernel, module, scope=scope, strict_lanes=strict)
    except Exception as error:
        frames = "".join(traceback.format_exception(error)[-2:])
        return [Comparison("CRASH", f"{type(error).__name__}: {error}"[:200], detail=frames[-500:])]


def report(
    kernel: Kernel, found: Comparison, *, strict: bool, symbolic: bool, scope: WantedScope, reduce: bool
) -> None:
    say(f"{found.kind} seed {kernel.seed}: {found.wrong}\n    {found.detail[:500]}")
    if reduce:

        def fails(candidate: Kernel, module: ModuleType) -> bool:
            return found.kind in {
                o.kind for o in outcomes_of(candidate, module, strict=strict, symbolic=symbolic, scope=scope)
            }

        small = reduced(kernel, fails)
        source = small.source()
        used = [
            f"{name}: {_told(spec)}" for name, spec in small.tensors.items() if f"{name} " in source.split("\n", 2)[2]
        ]
        say(f"{source}# {'; '.join(used)}\n# {small.scalars} grid {small.grid} warps {small.num_warps}\n")


def _told(spec: TensorSpec) -> str:
    text = f"{spec.dtype}[{spec.elems}]"
    return (
        text
        + (f" = {spec.base}[{spec.offset_elems}:]" if spec.base else "")
        + (f" {spec.values}" if spec.values else "")
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--reduce", action="store_true")
    parser.add_argument("--large", action="store_true", help="more programs, lanes and iterations")
    parser.add_argument("--scope", choices=("any", "launch"), default="any")
    parser.add_argument("--symbolic", action="store_true", help="only what the symbolic rungs prove on their own")
    options = parser.parse_args()
    kinds: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for first in range(options.first, options.last, BATCH):
            batch = [generate(seed, large=options.large) for seed in range(first, min(first + BATCH, options.last))]
            module = write_module(Path(folder) / f"fuzz_{first}.py", batch)
            for kernel in batch:
                how = {"strict": options.strict, "symbolic": options.symbolic, "scope": options.scope}
                for found in outcomes_of(kernel, module, **how):
                    kinds[found.kind] += 1
                    if found.refusal:
                        refusals[f"{found.kind}: {found.refusal}"] += 1
                    if found.kind == "races, truth unknown":
                        say(f"look at seed {kernel.seed}: {found.kind}: {found.detail}")
                    if found.wrong:
                        report(kernel, found, **how, reduce=options.reduce)
            if first % (10 * BATCH) == 0:
                say(f"at {first}: {dict(kinds)}")
    for name, counts in (("outcomes", kinds), ("refusals", refusals)):
        say(name)
        for kind, number in sorted(counts.items()):
            say(f"  {number:6d} {kind}")
    say(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
