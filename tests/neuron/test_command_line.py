"""Engine programs and command streams from the command line."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from bir_documents import ap, instruction, load, module
from click.testing import CliRunner, Result

from racefree.cli import racefree_command

EXAMPLES = Path(__file__).parents[2] / "examples" / "engine"
CLEAN, RACY = str(EXAMPLES / "clean.json"), str(EXAMPLES / "racy.json")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(racefree_command, ["check", *arguments])


@pytest.mark.parametrize(("arguments", "status"), [([CLEAN], 0), ([RACY], 1), ([CLEAN, RACY], 1), ([str(EXAMPLES)], 1)])
def test_exit_status(arguments: list[str], status: int) -> None:
    assert run(*arguments).exit_code == status


@pytest.mark.parametrize("order", ["dependencies", "semaphores", "both"])
def test_the_race_is_told_in_the_terms_of_the_field(order: str) -> None:
    shown = run(RACY, "--order", order).output
    assert "RF102" in shown
    assert "Matmult read of a (SBUF, partition 0, byte 0) by I-1 on PE" in shown
    assert "DMACopy write of a (SBUF, partition 0, byte 0) by I-3 on SP, queue qSPDynamicHW" in shown
    assert "1 engine programs: 1 races in 1" in shown


def blind(path: Path) -> str:
    """A race that the compiler's own check does not look at."""
    body = [instruction("W", "DVE", writes=[ap("a")], can_read_uninit=True), instruction("S", "PE", writes=[ap("a")])]
    path.write_text(json.dumps(module(body)))
    return str(path)


def test_compiler_exemptions(tmp_path: Path) -> None:
    path = blind(tmp_path / "d.json")
    assert run(path).exit_code == 1
    found = run("--compiler-exemptions", path, "-v")
    assert (found.exit_code, "uses the compiler's exemptions" in found.output) == (0, True)
    assert run("--compiler-exemptions", RACY).exit_code == 1


def test_first_race_only(tmp_path: Path) -> None:
    engines = ("DVE", "PE", "Pool")
    path = tmp_path / "d.json"
    path.write_text(json.dumps(module([instruction(engine, engine, writes=[ap("a")]) for engine in engines])))

    def races(*options: str) -> int:
        report: Any = json.loads(run(str(path), "--format", "json", *options).output)
        return int(report["summary"]["races"])

    assert (races(), races("--first")) == (3, 1)


def test_a_broken_document_is_bad_input(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text('{"functions": [{"name": 3}]}')
    found = run(str(path))
    assert found.exit_code == 2
    assert "$.functions[0].name: expected a string, found 3" in found.output


def test_a_command_stream_is_recognised_by_its_first_bytes(tmp_path: Path) -> None:
    transfer = [0x0130, 0x4030, 0, 0x0131 | 1 << 16, 0x4031, 0, 0x4032, 64, 0x0010]
    words = [0x31504F43, 1, 0x00180007, 0, 5, 5, 5, 2 | 10 << 16, *transfer, 0xFFFF0000]
    path = tmp_path / "stream.bin"
    path.write_bytes(struct.pack(f"<{len(words)}I", *words))
    found = run(str(path), "-v")
    assert found.exit_code == 0
    assert "assumes that the memory regions of a stream do not overlap" in found.output


def test_a_proof_says_what_it_assumes() -> None:
    shown = " ".join(run(CLEAN, "-v").output.split())
    assert "assumes that an engine finishes each instruction before the next one starts" in shown
    assert "assumes that external tensors do not share memory" in shown


def test_what_queues_are_trusted_with(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps(module([load("L", "a"), load("M", "a")])))
    assert run(str(path)).exit_code == 1
    trusted = run(str(path), "--queues", "trusted", "-v")
    assert (trusted.exit_code, "assumes that each queue transfers one at a time" in trusted.output) == (0, True)


@pytest.mark.parametrize("text", ["null", "3", '"print(1)"', "", "print('a script')"])
def test_json_files_are_never_run_as_scripts(tmp_path: Path, text: str) -> None:
    (tmp_path / "odd.json").write_text(text)
    found = run(str(tmp_path / "odd.json"))
    assert found.exit_code == 2
    assert found.output.count("\n") == 1
    assert found.output.startswith("racefree: ") or "odd.json: " in found.output


def test_one_broken_document_does_not_stop_the_others(tmp_path: Path) -> None:
    for name in ("a.json", "z.json"):
        (tmp_path / name).write_text(Path(RACY).read_text())
    (tmp_path / "cut.json").write_text(Path(RACY).read_text()[:900])
    (tmp_path / "list.json").write_text("[]")
    found = run(str(tmp_path))
    assert found.exit_code == 1  # races weigh most
    assert "2 engine programs: 1 races in 2" in found.output
    for told in ("cut.json: character", "list.json: $: expected a BIR module"):
        assert told in found.output
    (tmp_path / "a.json").write_text(Path(CLEAN).read_text())
    (tmp_path / "z.json").unlink()
    assert run(str(tmp_path)).exit_code == 2
