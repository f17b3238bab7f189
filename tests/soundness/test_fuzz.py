"""Random kernels: the verdict of the rungs against enumeration, on the launch and on what else the verdict claims."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from comparing import compare
from generation import generate
from judging import write_module

PER_BATCH = 40


@pytest.mark.parametrize("first", range(0, 200, PER_BATCH))
def test_verdicts_agree_with_enumeration(first: int, tmp_path: Path) -> None:
    kernels = [generate(seed) for seed in range(first, first + PER_BATCH)]
    module = write_module(tmp_path / f"fuzz_{first}.py", kernels)
    outcomes = [(k.seed, o) for k in kernels for o in compare(k, module, scope="launch", strict_lanes=k.seed % 4 == 0)]
    wrong = {seed: (o.wrong, o.detail) for seed, o in outcomes if o.wrong}
    assert not wrong, f"generate(seed) for each seed: {wrong}"
    kinds = Counter(o.kind.split(" ")[0] for _, o in outcomes)
    assert kinds["ok"] + kinds["races"] >= 1.6 * PER_BATCH, kinds


def test_proofs_for_any_grid_hold_on_other_grids(tmp_path: Path) -> None:
    kernels = [generate(seed) for seed in range(300, 308)]
    module = write_module(tmp_path / "any_grid.py", kernels)
    outcomes = [(k.seed, o) for k in kernels for o in compare(k, module, scope="any")]
    wrong = {seed: (o.wrong, o.detail) for seed, o in outcomes if o.wrong}
    assert not wrong, f"generate(seed) for each seed: {wrong}"
    assert any("any-grid" in o.kind for _, o in outcomes)
