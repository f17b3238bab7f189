"""Runs a kernel compiled when the work is big, and as plain Python when compiling would take longer than the work."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any

COMPILED_FROM = 4_000
"""Units of work (steps, pairs) from which loading Numba and compiling pays."""

COMPILED_FROM_LOADED = 300
"""The same when something has loaded Numba already."""


@cache
def _compile(kernel: Callable[..., Any]) -> Callable[..., Any]:
    from numba import njit

    compiled: Callable[..., Any] = njit(cache=True, nogil=True, error_model="numpy")(kernel)
    return compiled


def kernel(function: Callable[..., Any], work: int) -> Callable[..., Any]:
    """The function itself for little work, its compiled form for much; both give the same answers."""
    if work < (COMPILED_FROM_LOADED if "numba" in sys.modules else COMPILED_FROM):
        return function
    return _compile(function)
