"""`racefree check` on engine programs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from cli_scripts import Check

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
