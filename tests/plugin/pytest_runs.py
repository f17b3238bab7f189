"""Runs pytest with racefree's plugin in a folder of its own, and reads how its tests ended."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

_ENDED = re.compile(r"^(PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS) test_suite\.py::(\S+)", re.M)


def run(folder: Path, files: dict[str, str], *options: str) -> subprocess.CompletedProcess[str]:
    """Runs pytest on modules given as texts by name; `test_suite` holds the tests."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "racefree.pytest_plugin",
        "-p",
        "no:cacheprovider",
        "-rA",
        *options,
    ]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def outcomes(stdout: str) -> dict[str, set[str]]:
    """How each test ended; one may pass and then end with an error in its teardown."""
    found: dict[str, set[str]] = {}
    for word, name in _ENDED.findall(stdout):
        found.setdefault(name, set()).add(word.lower())
    return found
