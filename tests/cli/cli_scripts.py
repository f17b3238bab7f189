"""Scripts that the tests of this folder check, and how they run the command line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Check = Callable[..., Result]
Write = Callable[[str], Path]

HEADER = """\
import torch
import triton
import triton.language as tl


@triton.jit
def fill(out, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    offsets = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.program_id(0), mask=offsets < n)  # line 9


"""
