"""Brings a generated kernel to life: source file, tensors, program; and says what brute force thinks of it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from kernels import PRELUDE, Kernel, TensorSpec
from lowering import read

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Op, Program, walk
from racefree.proof.handed_results import with_result_barriers
from racefree.proof.replay import Rules, Unreplayable, enumerate_races


def write_module(path: Path, kernels: Iterable[Kernel]) -> ModuleType:
    """A real module file, as `triton.jit` needs one."""
    path.write_text(PRELUDE + "\n\n".join(k.source() for k in kernels))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def build_arguments(tensors: Mapping[str, TensorSpec], scalars: Mapping[str, int]) -> dict[str, Any]:
    """Fresh tensors and the scalars, in parameter order."""
    made: dict[str, Any] = {}
    for name, spec in tensors.items():
        dtype = getattr(torch, spec.dtype)
        if spec.base:
            made[name] = made[spec.base][spec.offset_elems :].view(dtype)
        elif spec.values is not None:
            made[name] = torch.tensor(spec.values, dtype=dtype)
        else:
            made[name] = torch.zeros(spec.elems, dtype=dtype)
    return {**made, **scalars}


@dataclass(frozen=True, slots=True)
class Judged:
    """What enumeration says: `status` is "ok", "races", "doubtful" or "unknown".

    Doubtful: the answer hangs on whether mixing lanes counts as dependence, or there is no race but a lane leaves its tensor
    (such lanes are left out). Unknown: a value that decides something is not known. `races` lists every racing pair of accesses
    when `all_pairs` is true.
    """

    status: str
    reason: str = ""
    races: tuple[Any, ...] = ()
    all_pairs: bool = False


MOST_STEPS = 3000
"""Accesses, barriers and iterations of one instance: a kernel that takes more never ends."""


def judge(program: Program, facts: LaunchFacts, *, strict_lanes: bool = False) -> Judged:
    """The truth about one launch, as far as enumeration can tell."""
    program = with_result_barriers(program)
    try:
        weak = enumerate_races(program, facts, Rules(strict_lanes, cross_lanes=False), max_steps=MOST_STEPS)
        found = weak
        if weak.races and _mixes(program):
            found = enumerate_races(program, facts, Rules(strict_lanes, cross_lanes=True), max_steps=MOST_STEPS)
    except Unreplayable as error:
        return Judged("unknown", error.reason)
    if found.out_of_bounds and not weak.races:
        return Judged("doubtful", "a lane leaves its tensor")
    if bool(weak.races) != bool(found.races):
        return Judged("doubtful", "depends on lanes being mixed", weak.races)
    return Judged("races" if found.races else "ok", "", found.races, not found.out_of_bounds)


def _mixes(program: Program) -> bool:
    return any(
        (isinstance(s, Op) and s.name in ("tt.reduce", "tt.scan", "tt.gather")) or getattr(s, "lanewise", True) is False
        for s in walk(program.body)
    )


def prepared(kernel: Kernel, module: ModuleType) -> tuple[Program, LaunchFacts, dict[str, Any]]:
    """The program, the facts, and the arguments that must stay alive while the facts are used."""
    arguments = build_arguments(kernel.tensors, kernel.scalars)
    function = getattr(module, kernel.name)
    program, facts = read(function, arguments, kernel.grid, num_warps=kernel.num_warps)
    return program, facts, arguments


def axes_read(program: Program) -> set[int]:
    """Grid axes the program can tell apart."""
    names = ("tt.get_program_id", "tt.get_num_programs")
    found = {s.attributes["axis"] for s in walk(program.body) if isinstance(s, Op) and s.name in names}
    return {axis for axis in found if isinstance(axis, int)}


def reads_grid(program: Program) -> bool:
    """Whether an instance can tell how large the grid is."""
    return any(isinstance(s, Op) and s.name == "tt.get_num_programs" for s in walk(program.body))


def other_grids(program: Program, grid: tuple[int, int, int], limit: int = 6) -> list[tuple[int, int, int]]:
    """All grids with at most `limit` programs along the axes the program reads; the others keep the launch's extent."""
    axes = axes_read(program)
    choices = [range(1, limit + 1) if axis in axes else (grid[axis],) for axis in range(3)]
    found = [(x, y, z) for x, y, z in product(*choices)]
    return [g for g in found if _count(g) <= max(limit, _count(grid)) and g != grid]


def _count(grid: tuple[int, int, int]) -> int:
    return grid[0] * grid[1] * grid[2]
