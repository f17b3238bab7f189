"""What importing racefree may load, and in which direction its parts may import each other."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import racefree

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "src" / "racefree"
HEAVY = {"z3", "torch", "triton", "numba", "rich", "islpy", "xdsl"}


def loaded_by(code: str) -> set[str]:
    told = f"{code}\nimport sys\nprint(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(done.stdout.split())


@pytest.mark.parametrize("code", ["import racefree", "import racefree.cli", "import racefree; racefree.analyze"])
def test_importing_loads_nothing_heavy(code: str) -> None:
    assert loaded_by(code) & HEAVY == set()


def test_public_names_are_all_there() -> None:
    assert all(getattr(racefree, name).__name__ or True for name in racefree.__all__ if name != "launches")
    assert isinstance(racefree.launches, list)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        racefree.nothing  # noqa: B018


def test_imports_go_one_way() -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "from importlinter.cli import lint_imports_command; lint_imports_command()",
            "--no-cache",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_command_line_prints() -> None:
    printing = [
        path.relative_to(SOURCES).as_posix()
        for path in sorted(SOURCES.rglob("*.py"))
        if path.name != "cli.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert printing == []
