"""Decides launches that were saved to files; neither the script nor Triton nor torch is needed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from racefree.analysis import Analyst
from racefree.errors import InputError
from racefree.frontends import Found, Request
from racefree.replaying import without_kernel

if TYPE_CHECKING:
    from racefree.triton.launches import CapturedLaunch

AT_ONCE_BYTES = 256 << 20
AT_ONCE = 64
"""So many files, and so much of their contents, are read before what they ask is shared among processes."""


def check(requests: Sequence[Request], found: Found) -> None:
    """All files of one run together. Raises InputError for those that are damaged once the others have been decided, or
    when options are given that a saved launch has already answered.
    """
    analyst = Analyst(requests[0].settings, draws=requests[0].draws)
    damaged: list[str] = []
    for taken in _batches(requests, damaged):
        found.begin(taken[0].kernel if len(taken) == 1 else f"{len(taken)} saved launches")
        try:
            decided = analyst.decide_all(taken)
        except KeyboardInterrupt:
            for captured in taken:
                found.add(analyst.so_far(captured))
            raise
        for each in decided:
            replays = requests[0].replays is not None
            found.add(without_kernel(each.launch, "a saved launch has no kernel to run") if replays else each.launch)
    found.tracebacks += analyst.tracebacks
    if damaged:
        raise InputError("; ".join(damaged))


def _batches(requests: Sequence[Request], damaged: list[str]) -> Iterator[list[CapturedLaunch]]:
    """The launches of the files in their order; files that cannot be read are added to `damaged`."""
    from racefree.triton.saved import load_launch

    taken: list[CapturedLaunch] = []
    size = 0
    for request in requests:
        try:
            taken.append(load_launch(request.path))
        except InputError as error:
            damaged.append(str(error))
            continue
        size += request.path.stat().st_size
        if len(taken) == AT_ONCE or size > AT_ONCE_BYTES:
            yield taken
            taken, size = [], 0
    if taken:
        yield taken
