"""`pytest --racefree` with a baseline and with allow comments."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from baseline_kernels import Check

SUITE = """
import kernels


def test_put():
    kernels.put[(4,)](kernels.ints(), 1, STEP=8)


def test_twice():
    kernels.twice[(4,)](kernels.ints(), STEP=8)


def test_twice_again():
    kernels.twice[(4,)](kernels.ints(), STEP=4)
"""


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_kernels.py").write_text(SUITE, encoding="utf-8")
    plugins = ("-p", "racefree.pytest_plugin", "-p", "no:cacheprovider")
    command = [sys.executable, "-m", "pytest", "--racefree", *plugins, "-q", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder)


def test_baseline_written_by_check(kernels: Path, check: Check, tmp_path: Path) -> None:
    text = kernels.read_text()
    kernels.write_text(text.replace("    put[(4,)](ints(), 1, STEP=8)\n", ""))
    assert check("--write-baseline", "known.json", "kernels.py").exit_code == 0
    kernels.write_text(text)
    done = run(tmp_path, "--racefree-baseline", "known.json")
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "FAILED test_kernels.py::test_put" in done.stdout
    assert "3 launches: 1 races in 1, 0 not analysed, 0 vacuous, 0 proved race-free; 1 races allowed" in done.stdout
    (tmp_path / "pyproject.toml").write_text('[tool.racefree]\nbaseline = "missing.json"\n')
    broken = run(tmp_path)
    assert "--racefree: cannot read the baseline" in broken.stderr
    assert broken.returncode == 4


def test_comments(kernels: Path, tmp_path: Path) -> None:
    text = kernels.read_text()
    allowed = text.replace("offsets, 1)", "offsets, 1)  # racefree: allow[RF001] same value")
    kernels.write_text(allowed.replace("tl.constexpr):\n", "tl.constexpr):  # racefree: allow[RF002] none\n", 1))
    done = run(tmp_path)
    assert "1 failed, 2 passed" in done.stdout, done.stdout + done.stderr
    assert "kernels.py:7: stale comment: allow[RF002] allows no race of this run" in done.stdout
    assert "; 1 races allowed" in done.stdout
