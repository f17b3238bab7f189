"""Times reading, lowering and checking one large document: `python tests/neuron/big_document.py FILE INSTRUCTIONS`."""

from __future__ import annotations

import copy
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from racefree.engines.check import Options as CheckOptions
from racefree.engines.check import check
from racefree.neuron.generate import Options, generate
from racefree.neuron.lowering import lower_all
from racefree.neuron.reading import load

T = TypeVar("T")


def repeated(instructions: int) -> Any:
    """A generated program of fenced blocks, its blocks repeated under new names."""
    document = generate(Options(seed=3, instructions=800, blocks=4, tiles=24))
    function = document["functions"][0]
    blocks, queues = function["blocks"], document["queues"]
    once = sum(len(block["instructions"]) for block in blocks)
    function["blocks"], descriptors = [], {queue["name"]: queue["blocks"] for queue in queues}
    for queue in queues:
        queue["blocks"] = []
    for turn in range(-(-instructions // once)):
        text = json.dumps([blocks, descriptors])
        copied, copied_descriptors = json.loads(text.replace('"I-', f'"I{turn}-').replace('"Block', f'"B{turn}_'))
        function["blocks"] += copied
        for queue in queues:
            queue["blocks"] += copy.deepcopy(copied_descriptors[queue["name"]])
    return document


def timed(what: str, work: Callable[[], T]) -> T:
    began, used = time.perf_counter(), time.process_time()
    result = work()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    sys.stderr.write(
        f"{what}: {time.perf_counter() - began:.2f} s ({time.process_time() - used:.2f} s of CPU), peak {memory:.2f} GB\n"
    )
    return result


def main(path: Path, instructions: int) -> None:
    if not path.exists():
        path.write_text(json.dumps(repeated(instructions), indent=1))
    sys.stderr.write(f"{path.stat().st_size / 1e6:.0f} MB\n")
    module = timed("read", lambda: load(path))
    program = timed("lower", lambda: lower_all(module)[0])
    sys.stderr.write(f"{len(program)} rows, {len(program.footprints)} footprints\n")
    for order in ("dependencies", "semaphores"):
        verdict = timed(order, lambda order=order: check(program, order=order, options=CheckOptions(repair=False)))  # type: ignore[misc]
        sys.stderr.write(f"{verdict.status.value}, {verdict.orders[0].race_count} races, {verdict.refusals[:1]}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
