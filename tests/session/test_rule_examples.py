"""The racy kernel that explains a rule breaks that rule and no other; the fixed one is proved."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

import racefree
from racefree.report.launches import rule_of
from racefree.report.rules import INSIDE_READ_WRITE, INSIDE_WRITES, RULES

KERNEL_RULES = [name for name in RULES if name.startswith("RF0")]


def kernel(source: str, folder: Path) -> Any:
    path = folder / "example.py"
    path.write_text(f"import triton\nimport triton.language as tl\n\n\n{source}\n", encoding="utf-8")
    spec = importlib.util.spec_from_file_location(f"example_{folder.name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.kernel


def verdict_of(source: str, folder: Path, programs: int) -> racefree.Launch:
    found = kernel(source, folder)
    given = {name: torch.zeros(2048, dtype=torch.int32) for name in found.arg_names if name != "BLOCK"}
    block = {"BLOCK": 256} if "BLOCK" in found.arg_names else {}
    return racefree.analyze(found, grid=(programs,), **given, **block)


def programs(rule: str) -> int:
    """One for the rules about a single program: several would race as well, since all do the same."""
    return 1 if rule in (INSIDE_WRITES, INSIDE_READ_WRITE) else 4


@pytest.mark.parametrize("rule", KERNEL_RULES)
def test_racy_example(rule: str, tmp_path: Path) -> None:
    races = verdict_of(RULES[rule].racy, tmp_path, programs(rule)).races
    assert {rule_of(race) for race in races} == {rule}


@pytest.mark.parametrize("rule", KERNEL_RULES)
def test_fixed_example(rule: str, tmp_path: Path) -> None:
    verdict = verdict_of(RULES[rule].fixed, tmp_path, programs(rule)).verdict
    assert verdict.status == "ok", verdict
