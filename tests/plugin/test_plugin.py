"""`pytest --racefree` on a small suite written for a GPU, in one process and in two workers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import pytest_runs

SUITE = """
import checks
import pytest
import torch
import triton
import triton.language as tl


@triton.jit
def fill(out, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    offsets = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + offsets, 1.0, mask=offsets < n)


@triton.jit
def scatter(out, index, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + lanes).to(tl.int32), 1.0)


def launch(step):
    out = torch.zeros(64, device="cuda")
    fill[(4,)](out, 64, BLOCK=16, STEP=step)
    return out


@pytest.fixture
def racy_setup():
    launch(8)


def test_clean():
    assert int(launch(16).sum()) == 64


def test_racy():
    launch(8)


def test_racy_but_swallowed():
    try:
        launch(8)
        raise RuntimeError
    except Exception:
        pass


@pytest.mark.racefree_allow("RF001", reason="both write one")
def test_racy_and_allowed():
    launch(8)


def test_racy_in_setup(racy_setup):
    pass


def test_racy_after_a_wrong_result():
    assert int(launch(16).sum()) == 64
    launch(8)


def test_racy_after_a_wrong_result_found_elsewhere():
    checks.holds(int(launch(16).sum()) == 64)
    launch(8)


def test_ends_at_a_wrong_result():
    told = checks.holds(int(launch(16).sum()) == 64)
    launch(8)


def test_expects_a_failure():
    launch(16)
    with pytest.raises(AssertionError):
        assert False


@pytest.mark.xfail(strict=True)
def test_known_to_be_wrong():
    assert int(launch(16).sum()) == 64


@pytest.mark.xfail(raises=KeyError)
def test_known_to_raise():
    launch(16)
    raise KeyError("mine")


def test_counts_its_launches(racefree):
    launch(16)
    assert len(racefree.launches) == 2


def test_not_analysed():
    scatter[(4,)](torch.zeros(64, device="cuda"), torch.zeros(64, device="cuda"), BLOCK=16)


def test_own_error():
    launch(16)
    raise KeyError("mine")


def test_no_launch_and_wrong():
    assert 1 == 2


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_seen_as_a_gpu():
    launch(16)


def test_fixture(racefree):
    launch(8)
    assert [race.race_type for race in racefree.races] == ["WAW"]
    with pytest.raises(pytest.fail.Exception, match="RF001"):
        racefree.check()
    racefree.launches.clear()
"""

CHECKS = """
def holds(value):
    if not value:
        raise AssertionError
"""

EXPECTED = {
    "test_clean": "passed",
    "test_racy": "failed",
    "test_racy_but_swallowed": "failed",
    "test_racy_and_allowed": "passed",
    "test_racy_in_setup": "failed",
    "test_racy_after_a_wrong_result": "failed",
    "test_racy_after_a_wrong_result_found_elsewhere": "failed",
    "test_ends_at_a_wrong_result": "passed",
    "test_expects_a_failure": "passed",
    "test_known_to_be_wrong": "passed",
    "test_known_to_raise": "xfail",
    "test_counts_its_launches": "failed",
    "test_not_analysed": "passed",
    "test_own_error": "failed",
    "test_no_launch_and_wrong": "failed",
    "test_seen_as_a_gpu": "passed",
    "test_fixture": "passed",
}


def run(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return pytest_runs.run(folder, {"test_suite": SUITE, "checks": CHECKS}, *options)


def outcomes(stdout: str) -> dict[str, str]:
    return {name: word for name, words in pytest_runs.outcomes(stdout).items() for word in words}


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["one process", "two workers"])
def test_suite(workers: tuple[str, ...], tmp_path: Path) -> None:
    done = run(tmp_path, "--racefree", "--racefree-output", "json=races.json", *workers)
    assert outcomes(done.stdout) == EXPECTED, done.stdout + done.stderr
    assert "17 launches: 1 races in 6, 1 not analysed, 0 vacuous, 10 proved race-free" in done.stdout
    assert (
        "3 tests found wrong results, which was disregarded, since no kernel ran; "
        "1 of them ended there, so that what they launch later is not known" in done.stdout
    )
    assert re.search(r"test_suite.py:18:\d+: NOT ANALYSED indirect-address", done.stdout)
    assert "test_suite.py:12:5: RACE RF001 write-write between programs on out[" in done.stdout
    summary = json.loads((tmp_path / "races.json").read_text())["summary"]
    assert (summary["launches"], summary["races"], summary["racing"]) == (17, 1, 6)


def test_pages_of_tests_have_their_maps(tmp_path: Path) -> None:
    run(tmp_path, "--racefree", "--racefree-output", "html=races.html", "-k", "test_clean")
    assert '"maps":[{"tensor":"out"' in (tmp_path / "races.html").read_text()


def test_fixture_alone_takes_the_launches_of_its_test(tmp_path: Path) -> None:
    done = run(tmp_path, "-k", "test_fixture or test_no_launch")
    assert outcomes(done.stdout) == {"test_fixture": "passed", "test_no_launch_and_wrong": "failed"}, done.stdout


def test_a_run_without_it_finds_its_assertions_as_they_are(tmp_path: Path) -> None:
    """Pytest keeps what it compiled; the lenient modules of one run must not meet another."""
    for options in (["--racefree"], [], ["--racefree"]):
        done = run(tmp_path, "-k", "test_no_launch_and_wrong or test_clean", *options)
        assert "assert 1 == 2" in done.stdout
        assert outcomes(done.stdout)["test_clean"] == ("passed" if options else "failed")
        assert "NameError" not in done.stdout


@cache
def loaded() -> frozenset[str]:
    code = "import racefree.pytest_plugin, sys; print(*sys.modules)"
    return frozenset(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    )


@pytest.mark.parametrize("name", ["torch", "triton", "numpy", "rich", "racefree.session", "racefree.report"])
def test_plugin_module_loads_little(name: str) -> None:
    assert name not in loaded()


def test_unknown_format_is_a_usage_error(tmp_path: Path) -> None:
    done = run(tmp_path, "--racefree", "--racefree-output", "docx=x")
    assert "--racefree-output docx=x: write FORMAT=FILE" in done.stderr
    assert done.returncode == pytest.ExitCode.USAGE_ERROR
