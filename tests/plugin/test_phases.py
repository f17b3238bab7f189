"""Launches of every phase of a test, of other threads, outside of tests, of runs that end early; with and without workers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
import pytest_runs

KERNELS = """
import torch
import triton
import triton.language as tl


@triton.jit
def fill(out, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    offsets = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + offsets, 1.0, mask=offsets < n)


def launch(step):
    out = torch.zeros(64, device="cuda")
    fill[(4,)](out, 64, BLOCK=16, STEP=step)
    return out
"""

CONFTEST = """
import torch

assert torch.cuda.is_available()
NAME = torch.cuda.get_device_name(0)
"""

SUITE = """
import asyncio
import threading
import unittest

import pytest
from kernels import launch

launch(8)


@pytest.fixture
def racy_after():
    yield
    launch(8)


@pytest.fixture
def skips():
    launch(8)
    pytest.skip("not here")


@pytest.fixture
def fails():
    launch(8)
    raise KeyError("mine")


def documented():
    \"\"\"
    >>> int(launch(16).sum())
    64
    \"\"\"


def documented_and_racy():
    \"\"\"
    >>> _ = launch(8)
    \"\"\"


@pytest.mark.parametrize("step", [16, 8])
def test_parametrised(step):
    launch(step)


class TestClass:
    def setup_method(self):
        launch(16)

    def test_racy(self):
        launch(8)


class Case(unittest.TestCase):
    def test_racy(self):
        launch(8)

    def test_wrong(self):
        self.assertEqual(int(launch(16).sum()), 64)


def test_async():
    async def go():
        launch(8)

    asyncio.run(go())


def test_skips_behind():
    launch(8)
    pytest.skip("not here")


def test_racy_after(racy_after):
    launch(16)


def test_skipped(skips):
    pass


def test_failing(fails):
    pass


def test_leaves_a_thread_behind():
    threading.Thread(target=launch, args=(8,), daemon=True).start()
    threading.Event().wait(0.5)


def test_clean():
    launch(16)
"""

EXPECTED = {
    "test_suite.documented": {"passed"},
    "test_suite.documented_and_racy": {"failed"},
    "test_parametrised[16]": {"passed"},
    "test_parametrised[8]": {"failed"},
    "TestClass::test_racy": {"failed"},
    "Case::test_racy": {"failed"},
    "Case::test_wrong": {"passed"},
    "test_async": {"failed"},
    "test_skips_behind": {"failed"},
    "test_racy_after": {"passed", "error"},
    "test_skipped": {"error"},
    "test_failing": {"error"},
    "test_leaves_a_thread_behind": {"failed"},
    "test_clean": {"passed"},
}


def run(folder: Path, suite: str, *options: str) -> subprocess.CompletedProcess[str]:
    files = {"kernels": KERNELS, "conftest": CONFTEST, "test_suite": suite}
    return pytest_runs.run(folder, files, "--racefree", *options)


WORKERS = pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])


@WORKERS
def test_every_launch_is_told_once_and_every_race_fails_its_test(workers: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, SUITE, "--doctest-modules", "--racefree-output", "json=races.json", *workers)
    assert pytest_runs.outcomes(done.stdout) == EXPECTED, done.stdout + done.stderr
    assert "17 launches: 1 races in 11, 0 not analysed, 0 vacuous, 6 proved race-free" in done.stdout
    assert "1 launches were made outside of any test" in done.stdout
    assert "apart from that it ended with KeyError: 'mine'" in done.stdout
    assert json.loads((tmp_path / "races.json").read_text())["summary"]["racing"] == 11


@WORKERS
def test_a_race_outside_of_tests_fails_the_run(workers: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, "from kernels import launch\nlaunch(8)\ndef test_nothing(): pass\n", *workers)
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert "kernels.py:10:5: RACE RF001" in done.stdout
    assert "1 launches: 1 races in 1" in done.stdout


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["one process", "a worker"])
def test_what_an_interrupted_test_launched_is_kept(workers: tuple[str, ...], tmp_path: Path) -> None:
    suite = "from kernels import launch\ndef test_cut():\n    launch(8)\n    raise KeyboardInterrupt\n"
    done = run(tmp_path, suite, "--racefree-output", "json=races.json", *workers)
    assert done.returncode == pytest.ExitCode.INTERRUPTED
    assert "1 launches were made by tests that did not end" in done.stdout
    assert "1 launches: 1 races in 1" in done.stdout
    assert json.loads((tmp_path / "races.json").read_text())["summary"]["races"] == 1


def test_a_worker_that_crashes_is_told(tmp_path: Path) -> None:
    suite = "import os\nfrom kernels import launch\ndef test_crash():\n    launch(8)\n    os._exit(3)\n"
    done = run(tmp_path, suite, "-n", "1", "--max-worker-restart", "0")
    assert "1 workers ended early; what the tests that they were at launched is not known" in done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED


def test_an_output_that_cannot_be_written_fails_the_run_at_its_end(tmp_path: Path) -> None:
    suite = "from kernels import launch\ndef test_clean():\n    launch(16)\n"
    done = run(tmp_path, suite, "--racefree-output", "html=/dev/full", "--racefree-output", "json=races.json")
    assert "cannot write /dev/full: No space left on device" in done.stdout
    assert "1 launches: 0 races in 0" in done.stdout
    assert done.returncode == pytest.ExitCode.TESTS_FAILED
    assert (tmp_path / "races.json").exists()


def test_an_output_without_a_folder_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, "", "--racefree-output", "json=nowhere/races.json")
    assert "cannot write nowhere/races.json: no such folder" in done.stderr
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
