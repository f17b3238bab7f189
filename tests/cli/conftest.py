"""Runs the command line in this process, on scripts written for the purpose."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from cli_scripts import HEADER, Check, Write
from click.testing import CliRunner, Result

from racefree.cli import racefree_command


@pytest.fixture
def check() -> Check:
    def run(*arguments: object) -> Result:
        return CliRunner().invoke(racefree_command, ["check", *map(str, arguments)], catch_exceptions=False)

    return run


@pytest.fixture
def script(tmp_path: Path) -> Write:
    """Writes a script that has the kernel `fill` above what it is given."""

    def write(body: str) -> Path:
        path = tmp_path / "script.py"
        path.write_text(HEADER + textwrap.dedent(body), encoding="utf-8")
        return path

    return write
