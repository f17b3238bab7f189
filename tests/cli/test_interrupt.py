"""Ctrl-C in the middle of an analysis: the run stops with a report of what is done, and no process stays behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_scripts import Write

# Whether sums of fourth powers meet keeps the solver busy for as long as it may.
HARD = """
@triton.jit
def hard(out, MORE: tl.constexpr):
    p = tl.program_id(0).to(tl.int64)
    q = tl.program_id(1).to(tl.int64)
    tl.store(out + (p * p * p * p + MORE * q * q * q * q), 1)


def launch(more):
    hard[(3, 2)](torch.empty(1 << 28, dtype=torch.int8, device="meta"), MORE=more)


def clean():
    fill[(4,)](torch.zeros(64, dtype=torch.int32, device="cuda"), 64, BLOCK=16, STEP=16)
"""


def family(pid: int) -> set[int]:
    """A process and all that it has started, also in other sessions."""
    found = {pid}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if parent == pid:
            found |= family(int(stat.parent.name))
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@contextmanager
def started(*arguments: object) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "racefree", "check", "--budget", "1000", *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(told: Path, process: subprocess.Popen[str]) -> None:
    while not told.exists():
        assert process.poll() is None
        time.sleep(0.05)


def interrupted(process: subprocess.Popen[str], asked: signal.Signals = signal.SIGINT) -> str:
    """Ends the run in the middle of the solver's work and returns its report; all of its family must be gone."""
    everyone = set()
    deadline = time.monotonic() + 3  # for the solver to be in the middle of it; earlier is no harm
    while time.monotonic() < deadline:
        everyone |= family(process.pid)
        time.sleep(0.1)
    process.send_signal(asked)
    stdout, stderr = process.communicate(timeout=60)
    assert "Traceback" not in stderr, stderr
    patience = time.monotonic() + 20
    while any(map(alive, everyone)) and time.monotonic() < patience:
        time.sleep(0.1)
    assert not [pid for pid in everyone if alive(pid)]
    return stdout


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_in_a_query(script: Write, tmp_path: Path) -> None:
    flag = tmp_path / "begun"
    path = script(f"{HARD}\nclean()\nopen({str(flag)!r}, 'w').close()\nlaunch(7)\nclean()\n")
    with started(path) as process:
        wait_until(flag, process)
        stdout = interrupted(process)
        assert "interrupted: the analysis of this launch was interrupted" in stdout.replace("NOT ANALYSED ", "")
        assert "2 launches: 0 races in 0, 1 not analysed, 0 vacuous, 1 proved race-free" in stdout
        assert process.returncode == 130


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_while_threads_are_in_queries(script: Write, tmp_path: Path, asked: signal.Signals) -> None:
    """One of them has this process, the other one a worker; the main thread only waits for them."""
    flag = tmp_path / "begun"
    body = f"""
import threading
clean()
threads = [threading.Thread(target=launch, args=(more,)) for more in (7, 11)]
for thread in threads:
    thread.start()
open({str(flag)!r}, 'w').close()
for thread in threads:
    thread.join()
clean()
"""
    with started("--jobs", 2, script(HARD + body)) as process:
        wait_until(flag, process)
        stdout = interrupted(process, asked)
        assert "3 launches: 0 races in 0, 2 not analysed, 0 vacuous, 1 proved race-free" in stdout
        assert "the script was interrupted" in stdout
        assert process.returncode == 130


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")
def test_a_run_that_is_killed_leaves_nothing_behind(script: Write, tmp_path: Path) -> None:
    flag = tmp_path / "begun"
    body = f"""
import threading
threads = [threading.Thread(target=launch, args=(more,)) for more in (7, 11)]
for thread in threads:
    thread.start()
open({str(flag)!r}, 'w').close()
"""
    with started("--jobs", 2, script(HARD + body)) as process:
        wait_until(flag, process)
        deadline, everyone = time.monotonic() + 60, set[int]()
        while len(everyone) < 3 and time.monotonic() < deadline:
            everyone |= family(process.pid)
            time.sleep(0.1)
        assert len(everyone) >= 3
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        patience = time.monotonic() + 20
        while any(map(alive, everyone)) and time.monotonic() < patience:
            time.sleep(0.1)
        assert not [pid for pid in everyone if alive(pid)]
