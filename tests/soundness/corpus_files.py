"""Reads a corpus file: one kernel, its launch, and what must come out, in comments at the top.

    # expect: races WAW R1 R2, WAR R3 R2     or     # expect: ok      (every racing pair of lines, complete)
    # strict: ...                            with lanes="strict", where that differs
    # any-grid: ok | races                   over all grids along the axes the kernel reads; absent: no claim
    # grid: 4                                or "2, 3"
    # warps: 1                               default 4
    # judge: interleavings                   atomics order the launch: enumeration of pairs cannot judge it

`# R1` marks a line. A read-write pair inside one program is in execution order.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from lowering import read

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program

FOLDER = Path(__file__).parent.parent / "corpus"

Pairs = frozenset[tuple[int, int, str]]
"""(line, line, WAW or RW), lines in ascending order"""


@dataclass(frozen=True, slots=True)
class Expectation:
    status: str
    pairs: Pairs


@dataclass(frozen=True, slots=True)
class Entry:
    """One corpus file. Lines count from 1 in the file."""

    path: Path
    expect: Expectation
    strict: Expectation
    any_grid: str | None
    grid: tuple[int, ...]
    num_warps: int
    synchronises: bool

    @property
    def name(self) -> str:
        return self.path.stem


def entries(*, synchronising: bool) -> list[Entry]:
    """The corpus files whose atomics order the launch, or all others; by name."""
    return [e for e in map(parse, sorted(FOLDER.glob("*.py"))) if e.synchronises is synchronising]


def parse(path: Path) -> Entry:
    """Reads the header and the line marks."""
    text = path.read_text()
    header = dict(re.findall(r"^# ([a-z-]+): (.+)$", text, re.MULTILINE))
    marks = {
        mark: number for number, line in enumerate(text.splitlines(), 1) for mark in re.findall(r"# (R\d+)$", line)
    }
    expect = _expectation(header["expect"], marks)
    strict = _expectation(header["strict"], marks) if "strict" in header else expect
    grid = tuple(int(n) for n in header["grid"].split(","))
    synchronises = header.get("judge") == "interleavings"
    return Entry(path, expect, strict, header.get("any-grid"), grid, int(header.get("warps", 4)), synchronises)


def _expectation(text: str, marks: dict[str, int]) -> Expectation:
    status, _, rest = text.partition(" ")
    assert status in ("ok", "races"), text
    pairs = set()
    for part in rest.split(",") if rest else []:
        kind, first, second = part.split()
        a, b = sorted((marks[first], marks[second]))
        pairs.add((a, b, "WAW" if kind == "WAW" else "RW"))
    assert (status == "races") == bool(pairs), text
    return Expectation(status, frozenset(pairs))


def load(path: Path) -> ModuleType:
    """Imports a corpus file, or a mutant of one."""
    spec = importlib.util.spec_from_file_location(f"corpus_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def launch(
    module: ModuleType, grid: tuple[int, ...], num_warps: int, *, margin_bytes: int = 0
) -> tuple[Program, LaunchFacts, dict[str, Any]]:
    """The program and facts of the file's launch, and the arguments that must stay alive beside them.

    With a margin, the memory of each tensor goes on before and behind it: a kernel that leaves a tensor is still in bounds.
    """
    arguments = module.arguments()
    ordered = {p.name: arguments[p.name] for p in module.kernel.params}
    if margin_bytes:
        ordered = _roomy(ordered, margin_bytes)
    program, facts = read(module.kernel, ordered, grid, num_warps=num_warps)
    return program, facts, ordered


def _roomy(arguments: dict[str, Any], margin_bytes: int) -> dict[str, Any]:
    larger: dict[int, torch.Tensor] = {}
    made = {}
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            if storage.data_ptr() not in larger:
                whole = torch.empty(0, dtype=torch.uint8).set_(storage)
                larger[storage.data_ptr()] = torch.nn.functional.pad(whole, (margin_bytes, margin_bytes))
            offset = value.storage_offset() + margin_bytes // value.element_size()
            room = larger[storage.data_ptr()].untyped_storage()
            value = torch.empty(0, dtype=value.dtype).set_(room, offset, value.shape, value.stride())
        made[name] = value
    return made
