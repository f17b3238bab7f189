"""Compares many generated kernels by hand: `python tests/soundness/long_run.py FIRST LAST [--synchronising] [--reduce]`."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from functools import partial
from math import prod
from pathlib import Path
from types import ModuleType

sys.path.insert(0, str(Path(__file__).parent))

from comparing import Comparison, compare, compare_launch, compare_strengthened
from generation import generate
from judging import prepared, write_module
from kernels import Kernel, TensorSpec
from matrix import INTERLEAVINGS, MOST_PROGRAMS, truth
from reducing import reduced
from synchronising import generate_synchronising

from racefree.proof.rungs import Options

BATCH = 50


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


Compared = Callable[[Kernel, ModuleType], list[Comparison]]


def guarded(compared: Compared) -> Compared:
    """An exception is an outcome too."""

    def outcomes(kernel: Kernel, module: ModuleType) -> list[Comparison]:
        try:
            return compared(kernel, module)
        except Exception as error:
            frames = "".join(traceback.format_exception(error)[-2:])
            return [Comparison("CRASH", wrong=f"{type(error).__name__}: {error}"[:200], detail=frames[-500:])]

    return outcomes


def synchronising(kernel: Kernel, module: ModuleType) -> list[Comparison]:
    """The truth is that of all interleavings; proofs for any grid are held against up to four programs."""
    program, facts, _alive = prepared(kernel, module)
    truth_of = partial(truth, interleavings=INTERLEAVINGS, home=prod(facts.grid))
    return [compare_launch(program, facts, Options(), truth_of, grids=MOST_PROGRAMS)]


def report(kernel: Kernel, found: Comparison, compared: Compared, *, reduce: bool) -> None:
    say(f"{found.kind} seed {kernel.seed}: {found.wrong}\n    {found.detail[:500]}")
    if reduce:

        def fails(candidate: Kernel, module: ModuleType) -> bool:
            return found.kind in {o.kind for o in compared(candidate, module)}

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


def _comparison(options: argparse.Namespace) -> Compared:
    if options.synchronising:
        return synchronising
    if options.symbolic:
        return lambda kernel, module: [compare_strengthened(kernel, module, strict_lanes=options.strict)]
    return partial(compare, scope=options.scope, strict_lanes=options.strict)


def _generated(seed: int, options: argparse.Namespace) -> Kernel:
    return generate_synchronising(seed) if options.synchronising else generate(seed, large=options.large)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("last", type=int)
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--reduce", action="store_true")
    parser.add_argument("--large", action="store_true", help="more programs, lanes and iterations")
    parser.add_argument("--scope", choices=("any", "launch"), default="any")
    parser.add_argument("--symbolic", action="store_true", help="only what the symbolic rungs prove on their own")
    parser.add_argument(
        "--synchronising", action="store_true", help="protocols of atomics, judged by all interleavings"
    )
    options = parser.parse_args()
    compared = guarded(_comparison(options))
    kinds: Counter[str] = Counter()
    refusals: Counter[str] = Counter()
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for first in range(options.first, options.last, BATCH):
            batch = [_generated(seed, options) for seed in range(first, min(first + BATCH, options.last))]
            module = write_module(Path(folder) / f"fuzz_{first}.py", batch)
            for kernel in batch:
                for found in compared(kernel, module):
                    kinds[found.kind] += 1
                    if found.refusal:
                        refusals[f"{found.kind}: {found.refusal}"] += 1
                    if found.kind == "races, truth unknown":
                        say(f"look at seed {kernel.seed}: {found.kind}: {found.detail}")
                    if found.wrong:
                        report(kernel, found, compared, reduce=options.reduce)
            if (first - options.first) % (4 * BATCH) == 0:
                say(f"after {first + len(batch) - options.first}: {dict(kinds)}")
    for name, counts in (("outcomes", kinds), ("refusals", refusals)):
        say(name)
        for kind, number in sorted(counts.items()):
            say(f"  {number:6d} {kind}")
    say(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
