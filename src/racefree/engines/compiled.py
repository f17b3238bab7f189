"""Runs a kernel compiled when the work is big, and as plain Python when compiling would take longer than the work."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

COMPILED_FROM = 4_000
"""Units of work (steps, pairs) from which loading Numba and compiling pays."""

COMPILED_FROM_LOADED = 300
"""The same when something has loaded Numba already."""


PARALLEL_FROM = 100_000
"""Units of work from which independent calls of a kernel are spread over threads; compiled kernels release the GIL."""


def in_parallel(calls: Sequence[Callable[[], object]], work: int) -> None:
    """Runs independent calls, on as many threads as there are processors when the work is big."""
    threads = min(len(calls), _processors())
    if work < PARALLEL_FROM or threads < 2:
        for call in calls:
            call()
        return
    calls[0]()  # Compiles where that is still to be done, once.
    with ThreadPoolExecutor(max_workers=threads) as pool:
        for done in [pool.submit(call) for call in calls[1:]]:
            done.result()


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def _compile(kernel: Callable[..., Any]) -> Callable[..., Any]:
    from numba import njit

    try:
        compiled: Callable[..., Any] = njit(cache=True, nogil=True, error_model="numpy")(kernel)
    except RuntimeError:  # No folder to keep compiled code in: compile it in every process.
        compiled = njit(nogil=True, error_model="numpy")(kernel)
    return compiled


def kernel(function: Callable[..., Any], work: int) -> Callable[..., Any]:
    """The function itself for little work, its compiled form for much; both give the same answers."""
    if work < (COMPILED_FROM_LOADED if "numba" in sys.modules else COMPILED_FROM):
        return function
    return _compile(function)
