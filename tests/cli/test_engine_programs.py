"""`racefree check` on engine programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cli_scripts import Check
from click.testing import CliRunner

from racefree.cli import racefree_command

EXAMPLES = Path(__file__).parents[2] / "examples" / "engine"


def test_clean_program(check: Check) -> None:
    done = check(EXAMPLES / "clean.json")
    assert done.stdout == "1 engine programs: 0 races in 0, 0 not analysed, 0 vacuous, 1 proved race-free\n"
    assert done.exit_code == 0


def test_racy_program_names_both_instructions_and_the_missing_wait(check: Check) -> None:
    done = check(EXAMPLES / "racy.json")
    assert "racy.json: RACE RF102 read-write between engines on a (SBUF, partition 0, byte 0)" in done.stdout
    assert "Matmult read of a (SBUF, partition 0, byte 0) by I-1 on PE" in done.stdout
    assert "DMACopy write of a (SBUF, partition 0, byte 0) by I-3 on SP, queue qSPDynamicHW" in done.stdout
    assert "clean by dependencies with these waits added: I-3 waits for I-1" in done.stdout
    assert done.stdout.endswith("1 engine programs: 1 races in 1, 0 not analysed, 0 vacuous, 0 proved race-free\n")
    assert done.exit_code == 1


def test_folder_with_options_behind_it(check: Check) -> None:
    done = check(EXAMPLES, "--order", "semaphores", "--format", "json")
    document = json.loads(done.stdout)
    orders = {o["order"] for s in document["value"]["subjects"] for o in s["records"]["orders"]}
    assert orders == {"semaphores"}
    assert document["summary"]["programs"] == 2
    assert document["summary"]["races"] == 1


def test_several_paths(check: Check) -> None:
    done = check(EXAMPLES / "clean.json", EXAMPLES / "racy.json")
    assert done.stdout.endswith("2 engine programs: 1 races in 1, 0 not analysed, 0 vacuous, 1 proved race-free\n")


def test_json_of_another_kind(check: Check, tmp_path: Path) -> None:
    path = tmp_path / "other.json"
    path.write_text('{"name": 3}', encoding="utf-8")
    done = check(path)
    assert done.stderr.startswith(f"racefree: {path}: ")
    assert done.exit_code == 2


def test_damaged_json(check: Check, tmp_path: Path) -> None:
    path = tmp_path / "half.json"
    path.write_text((EXAMPLES / "racy.json").read_text(encoding="utf-8")[:1500], encoding="utf-8")
    done = check(path)
    assert done.stderr.startswith(f"racefree: {path}: ")
    assert done.exit_code == 2


def test_reader_that_leaves_early() -> None:
    command = [sys.executable, "-m", "racefree", "check", str(EXAMPLES / "racy.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait() == 1


CLOSED = """
import os, subprocess, sys
for number in map(int, sys.argv[1].split()):
    os.close(number)
os.execv(sys.executable, [sys.executable, "-m", "racefree", *sys.argv[2:]])
"""


@pytest.mark.parametrize("closed", ["0", "1", "2", "1 2", "0 1 2"])
def test_a_standard_stream_that_is_closed(closed: str, tmp_path: Path) -> None:
    report = tmp_path / "report.txt"
    arguments = ["check", f"--output=concise={report}", str(EXAMPLES / "racy.json")]
    done = subprocess.run(
        [sys.executable, "-c", CLOSED, closed, *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert ("1 races in 1" in done.stdout) is ("1" not in closed)
    assert "RF102" in report.read_text(encoding="utf-8")


@pytest.mark.parametrize("arguments", [["explain"], ["explain", "RF001"]])
def test_an_explanation_that_cannot_be_written(arguments: list[str]) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        command = [sys.executable, "-m", "racefree", *arguments]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "racefree: cannot write stdout: No space left on device\n")


def test_a_saved_report_that_is_not_there() -> None:
    done = CliRunner().invoke(racefree_command, ["report", "missing.json"])
    assert (done.exit_code, done.stderr) == (2, "racefree: cannot read missing.json: No such file or directory\n")
