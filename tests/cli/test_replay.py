"""`racefree check --replay`: what it says of agreement, of what cannot be run, and of a verdict that a run contradicts."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cli_scripts import Check, Write

from racefree.analysis import Analyst, Decided
from racefree.frontends import script as script_front_end
from racefree.verdict import ProofScope, Status

CLEAN = "fill[(4,)](torch.zeros(64, dtype=torch.int32, device='cuda'), 64, BLOCK=16, STEP=16)\n"
RACY = "fill[(4,)](torch.zeros(64, dtype=torch.int32, device='cuda'), 64, BLOCK=16, STEP=8)\n"


class CallsEverythingProved(Analyst):
    def decide(self, captured: Any) -> Decided:
        decided = super().decide(captured)
        verdict = decided.launch.verdict
        scope = ProofScope.THIS_PARAMS_THIS_GRID
        configs = tuple(replace(c, status=Status.OK, rung="geometry", scope=scope, races=()) for c in verdict.configs)
        return replace(
            decided, launch=replace(decided.launch, verdict=replace(verdict, status=Status.OK, configs=configs))
        )


def test_agreement_is_counted_and_told(check: Check, script: Write) -> None:
    done = check("--replay", script(RACY))
    assert "a run of 2 program instances in Triton's interpreter agrees" in done.stdout
    assert "note: 1 of 1 verdicts were checked by a run in Triton's interpreter" in done.stdout
    assert done.exit_code == 1


def test_nothing_is_run_unless_asked(check: Check, script: Write) -> None:
    assert "interpreter" not in check(script(RACY)).stdout


def test_a_proof_that_the_run_contradicts_is_a_fault(
    check: Check, script: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script_front_end, "Analyst", CallsEverythingProved)
    assert check(script(RACY)).exit_code == 0
    done = check("--replay", script(RACY))
    assert (
        "proved race-free by geometry for this-params-this-grid, but in Triton's interpreter the store at"
        in done.stdout
    )
    assert "script.py:9 by program" in done.stdout
    assert "unordered; one of the two is wrong" in done.stdout
    assert "0 of 1 verdicts were checked" in done.stdout
    assert done.exit_code == 70


def test_a_large_grid_is_not_counted_as_checked(check: Check, script: Write) -> None:
    done = check("--replay-programs", "3", script(CLEAN))
    assert "fill: not replayed: the grid has 4 program instances, and at most 3 are run" in done.stdout
    assert "0 of 1 verdicts were checked" in done.stdout
    assert done.exit_code == 0


def test_saved_launches_have_no_kernel_to_run(check: Check, script: Write, tmp_path: Path) -> None:
    check("--save-launches", tmp_path / "launches", script(CLEAN))
    done = check(tmp_path / "launches", "--replay")
    assert "not replayed: a saved launch has no kernel to run" in done.stdout
    assert done.exit_code == 0
