"""The GitHub Action and the pre-commit hook: their files say what they should, and their commands run."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from pages import ROOT

RACY = """\
import sys
import torch
import triton
import triton.language as tl


@triton.jit
def fill(out, STEP: tl.constexpr):
    tl.store(out + tl.program_id(0) * STEP + tl.arange(0, 16), 1 if STEP != 3 else no_such_name)


fill[(4,)](torch.zeros(64, dtype=torch.int32, device="cuda"), STEP=int(sys.argv[1]))
"""


def document(name: str) -> Any:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def step(name: str) -> dict[str, Any]:
    (found,) = (step for step in document("action.yml")["runs"]["steps"] if step.get("name") == name)
    return found  # type: ignore[no-any-return]


def checked(
    folder: Path, environment: dict[str, str], **inputs: str
) -> tuple[subprocess.CompletedProcess[str], dict[str, str]]:
    """The step that checks, run as GitHub runs a `bash` step; with what it sets as outputs."""
    (folder / "kernels of ours.py").write_text(RACY)
    given = {
        name: str(value["default"]) for name, value in document("action.yml")["inputs"].items() if "default" in value
    }
    given |= {"path": "kernels of ours.py"} | {name.replace("_", "-"): value for name, value in inputs.items()}
    (folder / "output").touch()
    variables = {"GITHUB_OUTPUT": str(folder / "output"), "GITHUB_STEP_SUMMARY": str(folder / "summary.md")}
    for name, value in step("Check")["env"].items():
        variables[name] = given[value.removeprefix("${{ inputs.").removesuffix(" }}")]
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step("Check")["run"]],
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        check=False,
    )
    return done, dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())


def test_a_race_fails_the_step_and_is_shown(folder: Path, environment: dict[str, str]) -> None:
    done, outputs = checked(folder, environment, arguments="8")
    assert "::error file=kernels of ours.py,line=9,col=5,title=RF001 write-write between programs::" in done.stdout, (
        done.stderr
    )
    assert (done.returncode, outputs) == (1, {"status": "1"})
    assert "## RF001: write-write between programs on `out[8]`" in (folder / "summary.md").read_text()
    results = json.loads((folder / "racefree.sarif").read_text())["runs"][0]["results"]
    assert [result["ruleId"] for result in results] == ["RF001"]


def test_options_and_arguments_arrive_one_a_line(folder: Path, environment: dict[str, str]) -> None:
    done, outputs = checked(
        folder, environment, arguments="16\nand more; touch broken", options="--target=cuda:90\n--scope=launch\n"
    )
    assert (done.returncode, outputs) == (0, {"status": "0"}), done.stdout + done.stderr
    assert not (folder / "broken").exists()


@pytest.mark.parametrize(
    ("fail_on", "argument", "status", "step_status"),
    [
        ("not-analysed", "3", 3, 3),
        ("races", "3", 3, 0),
        ("races", "8", 1, 1),
        ("races", "no number", 2, 2),
    ],
)
def test_what_fails_the_step(
    fail_on: str, argument: str, status: int, step_status: int, folder: Path, environment: dict[str, str]
) -> None:
    done, outputs = checked(folder, environment, arguments=argument, fail_on=fail_on)
    assert (outputs["status"], done.returncode) == (str(status), step_status), done.stdout + done.stderr


def test_inputs_reach_the_shell_as_variables_only() -> None:
    """An expression inside a script would be pasted into it as code."""
    for one in document("action.yml")["runs"]["steps"]:
        assert "${{" not in one.get("run", "")


def test_hook(folder: Path, environment: dict[str, str]) -> None:
    (hook,) = document(".pre-commit-hooks.yaml")
    assert hook["id"] == "racefree"
    assert hook["pass_filenames"] is False
    (folder / "k.py").write_text(RACY)
    command = [*hook["entry"].split(), "k.py", "8"]
    done = subprocess.run(
        ["bash", "-c", '"$@"', "-", *command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("k.py:9:5: RF001 write-write between programs on out[8] [fill]\n")
    assert done.returncode == 1
