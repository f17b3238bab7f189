"""The programs enumeration judges touch what Triton's own interpreter touches, on random kernels."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from generation import generate
from judging import prepared, write_module
from lowering import CompileFailed

from racefree.access import Kind
from racefree.proof.replay import Options, Unreplayable
from racefree.proof.replay.enumeration import launch_events, without_conflict

FIRST, LAST = 0, 24
KINDS = {Kind.LOAD: "load", Kind.STORE: "store", Kind.RMW: "atomic", Kind.CAS: "atomic"}

Touched = dict[str, set[tuple[str, str, int, int]]]


def _interpreted() -> dict[int, Touched | None]:
    script = Path(__file__).with_name("interpreting.py")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, str(script), str(FIRST), str(LAST)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return {
        int(seed): None if isinstance(rows, str) else {pid: {tuple(r) for r in each} for pid, each in rows.items()}
        for seed, rows in json.loads(done.stdout).items()
    }


def test_random_kernels_touch_what_the_interpreter_touches(tmp_path: Path) -> None:
    theirs = _interpreted()
    kernels = [generate(seed) for seed in range(FIRST, LAST)]
    module = write_module(tmp_path / "compared.py", kernels)
    compared = 0
    for kernel in kernels:
        expected = theirs[kernel.seed]
        try:
            program, facts, arguments = prepared(kernel, module)
            options = Options(may_be_unknown=without_conflict(program, facts))
            events = launch_events(program, facts, options)
        except (CompileFailed, Unreplayable):
            continue
        if expected is None or not all(e.complete for _, e in events):
            continue
        starts = {n: arguments[n].untyped_storage() for n, spec in kernel.tensors.items() if not spec.base}
        ours: Touched = defaultdict(set)
        for pid, event in events:
            for address in event.addresses[event.active].reshape(-1).tolist():
                place = next(
                    (
                        (n, address - s.data_ptr())
                        for n, s in starts.items()
                        if 0 <= address - s.data_ptr() < s.nbytes()
                    ),
                    ("outside", 0),
                )
                ours[",".join(map(str, pid))].add((KINDS[event.access.kind], *place, event.access.element_bytes))
        for pid in ours.keys() | expected.keys():
            mine, other = ours.get(pid, set()), expected.get(pid, set())
            assert {r for r in mine if r[0] != "load"} == {r for r in other if r[0] != "load"}, (kernel.seed, pid)
            assert mine <= other, (kernel.seed, pid)
        compared += 1
    assert compared >= 0.8 * (LAST - FIRST)
