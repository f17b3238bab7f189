"""What a program is read to touch is what Triton's own interpreter touches, element for element."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

pytest.importorskip("triton")
pytest.importorskip("torch")

from racefree.access import Kind
from racefree.graph.launch import Tensor
from racefree.proof.replay import run_program
from racefree.triton.capture import capture_one
from racefree.ttir.read import read_program

KERNELS = Path(__file__).with_name("interpreted_kernels.py")
NAMES = ("signs", "unsigned", "wraps", "tiles", "folds", "flow", "pointers", "atomics", "described")
KINDS = {Kind.LOAD: "load", Kind.STORE: "store", Kind.RMW: "atomic", Kind.CAS: "atomic"}

Touched = set[tuple[str, str, int, int]]


@pytest.fixture(scope="module")
def interpreted() -> dict[str, dict[str, list[Any]]]:
    """Per kernel and program id, what the interpreter touched; it needs a process of its own."""
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run([sys.executable, KERNELS], env=environment, capture_output=True, text=True, check=True)
    found: dict[str, dict[str, list[Any]]] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def kernels() -> ModuleType:
    spec = importlib.util.spec_from_file_location("interpreted_kernels", KERNELS)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _ours(module: ModuleType, name: str, arch: int) -> dict[str, Touched]:
    launch = module.LAUNCHES[name]
    given = module.arguments(launch)
    config = capture_one(launch.kernel, [], given, launch.grid, target=f"cuda:{arch}").configs[0]
    assert config.module is not None
    assert config.facts is not None
    program = read_program(config.module)
    tensors = {key: value for key, value in config.facts.arguments.items() if isinstance(value, Tensor)}

    def place(address: int) -> tuple[str, int]:
        for key, tensor in tensors.items():
            if 0 <= address - tensor.address < tensor.storage.nbytes:
                return key, address - tensor.address
        return "outside", 0

    found: dict[str, Touched] = {}
    for x in range(launch.grid[0]):
        touched: Touched = set()
        for event in run_program(program, config.facts, (x, 0, 0)):
            active = np.broadcast_to(np.asarray(event.active, dtype=bool), event.addresses.shape)
            for address in event.addresses[active].reshape(-1).tolist():
                touched.add((KINDS[event.access.kind], *place(address), event.access.element_bytes))
        found[f"{x},0,0"] = touched
    return found


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("name", NAMES)
def test_what_is_touched(
    interpreted: dict[str, dict[str, list[Any]]], kernels: ModuleType, name: str, arch: int
) -> None:
    ours = _ours(kernels, name, arch)
    theirs = {pid: {tuple(row) for row in rows} for pid, rows in interpreted[name].items()}
    assert set(theirs) <= set(ours)
    for pid, touched in ours.items():
        expected = theirs.get(pid, set())
        assert {row for row in touched if row[0] != "load"} == {row for row in expected if row[0] != "load"}
        # The compiler drops loads nobody uses.
        assert touched <= expected
        assert all(row[1] != "outside" for row in touched)


def test_every_kernel_is_compared(kernels: ModuleType) -> None:
    assert set(NAMES) == set(kernels.LAUNCHES)
