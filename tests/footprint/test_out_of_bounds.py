"""Accesses that leave their tensors: a proof says that it takes them to meet nothing there."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl

from racefree.proof.rungs import Options, decide
from racefree.triton.capture import capture_one
from racefree.ttir.read import read_program
from racefree.verdict import ASSUMES_IN_BOUNDS, Status


@triton.jit
def fill(out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, 1.0, mask=at < n)


@pytest.mark.parametrize(("n", "leaves"), [(1000, False), (1001, True)])
def test_running_off_the_end_is_said(n: int, leaves: bool) -> None:
    captured = capture_one(fill, (torch.zeros(1000), n, 128), {}, (8,), "cuda:80").configs[0]
    assert captured.module is not None
    assert captured.facts is not None
    verdict = decide(read_program(captured.module), captured.facts, Options(scope="launch"))
    assert verdict.status is Status.OK
    assert (ASSUMES_IN_BOUNDS in verdict.qualifiers) == leaves
