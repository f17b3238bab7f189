"""A folder for the commands of one page, and the server that runs them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[1]

PROGRAMS = ("racefree", "tile-race", "python", "pytest")
START_SECONDS = 300


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment of a shell in which the programs of the documentation are those of the project's interpreter."""
    folder = tmp_path_factory.mktemp("programs")
    address = folder / "socket"
    for name in PROGRAMS:
        program = folder / name
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -I -S "{HERE}/command_client.py" {name} "$@"\n')
        program.chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "RACEFREE", "GITHUB"))}
    path = os.pathsep.join([str(folder), kept.get("PATH", os.defpath)])
    search = os.pathsep.join([str(ROOT / "src"), *kept.get("PYTHONPATH", "").split(os.pathsep)]).rstrip(os.pathsep)
    shell = kept | {"PATH": path, "PYTHONPATH": search, "COLUMNS": "100", "COMMAND_SERVER": str(address)}
    server = subprocess.Popen([sys.executable, HERE / "command_server.py", address], env=shell, cwd=folder)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not address.exists():
            assert server.poll() is None, "the server of the commands did not start"
            assert time.monotonic() < deadline, "the server of the commands takes too long to start"
            time.sleep(0.05)
        yield shell
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a reader has who stands in a copy of the project: the examples."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path
