"""Runs the command line on a small kernel file, from any folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from baseline_kernels import KERNELS, Check
from click.testing import CliRunner, Result

from racefree.cli import racefree_command


@pytest.fixture
def kernels(tmp_path: Path) -> Path:
    """A script of two kernels that race by RF001, in lines 8 and 14."""
    path = tmp_path / "kernels.py"
    path.write_text(KERNELS, encoding="utf-8")
    return path


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """`racefree check` with these arguments in the temporary folder, or in one inside it."""

    def run(*arguments: object, folder: str = ".") -> Result:
        (tmp_path / folder).mkdir(exist_ok=True)
        monkeypatch.chdir(tmp_path / folder)
        return CliRunner().invoke(racefree_command, ["check", *map(str, arguments)], catch_exceptions=False)

    return run
