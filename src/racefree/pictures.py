"""What a launch does to its tensors, as pictures: which program writes which element, and what the racing programs touch."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from racefree.errors import RacefreeError
from racefree.graph.launch import Descriptor, LaunchFacts, Tensor
from racefree.graph.program import Program
from racefree.launch import TensorMap, Touched
from racefree.verdict import CompiledRaceRecord

Pid = tuple[int, int, int]
Elements = npt.NDArray[np.int64]

NO_OWNER = -1
MOST_ELEMENTS = 1 << 22
MOST_PROGRAMS = 4096
MOST_RUNS = 20_000
SECONDS = 2.0
"""Bounds of one map; beyond them it says that it is not complete."""

KEPT_RUNS, KEPT_SECONDS = 1000, 0.5
"""Bounds of one that is kept in case somebody wants to see it."""


@dataclass(slots=True)
class _Canvas:
    """The lowest program that writes each element of a tensor, and whether another does too, while programs are walked."""

    tensor: Tensor
    elements: int
    owners: Elements
    contested: npt.NDArray[np.bool_]
    touched: dict[Pid, Touched] = field(default_factory=dict)


def tensor_maps(
    program: Program,
    facts: LaunchFacts,
    races: Sequence[CompiledRaceRecord],
    *,
    seconds: float = SECONDS,
    most_runs: int = MOST_RUNS,
) -> tuple[TensorMap, ...]:
    """A map of each tensor that a race is on, or of each written one when there is no race. Empty if none can be drawn.

    A map of more than `most_runs` runs is cut there, and is not complete.
    """
    from racefree.graph.written import written_parameters

    racing = {side.tensor for race in races for side in (race.first, race.second)}
    names = sorted(racing or written_parameters(program) or ())
    canvases = {name: canvas for name in names if (canvas := _canvas(facts, name)) is not None}
    if not canvases:
        return ()
    shown = list(dict.fromkeys(pid for race in races[:8] for pid in race.programs))
    deadline = time.monotonic() + seconds
    programs = prod(facts.grid)
    pids = [*shown, *(pid for pid in itertools.islice(_grid(facts.grid), MOST_PROGRAMS) if pid not in set(shown))]
    done = 0
    for pid in pids:
        kept = most_runs if pid in shown else 0
        if time.monotonic() > deadline or not _walk(program, facts, pid, canvases, kept_runs=kept):
            break
        done += 1
    return tuple(_map(name, canvas, most_runs, complete=done >= programs) for name, canvas in canvases.items() if done)


def _canvas(facts: LaunchFacts, name: str) -> _Canvas | None:
    argument = facts.arguments.get(name)
    tensor = argument.base if isinstance(argument, Descriptor) else argument
    if not isinstance(tensor, Tensor) or not tensor.element_bytes:
        return None
    end = tensor.storage.address + tensor.storage.nbytes
    elements = (end - tensor.address) // tensor.element_bytes
    if not 0 < elements <= MOST_ELEMENTS:
        return None
    return _Canvas(tensor, elements, np.full(elements, NO_OWNER, dtype=np.int64), np.zeros(elements, dtype=np.bool_))


def _grid(grid: Pid) -> Iterator[Pid]:
    for z, y, x in itertools.product(range(grid[2]), range(grid[1]), range(grid[0])):
        yield x, y, z


def _walk(program: Program, facts: LaunchFacts, pid: Pid, canvases: dict[str, _Canvas], *, kept_runs: int) -> bool:
    """Adds what one program instance touches, and keeps so many runs of it; false when plain evaluation cannot tell."""
    from racefree.proof.replay.run import run_program

    number = pid[0] + facts.grid[0] * (pid[1] + facts.grid[1] * pid[2])
    try:
        events = run_program(program, facts, pid)
    except RacefreeError:
        return False
    for canvas in canvases.values():
        written: list[Elements] = []
        read: list[Elements] = []
        for event in events:
            found = _elements(event, canvas)
            (written if event.access.kind.writes else read).append(found)
        wrote = np.unique(np.concatenate(written)) if written else np.zeros(0, dtype=np.int64)
        before = canvas.owners[wrote]
        canvas.contested[wrote] |= (before != NO_OWNER) & (before != number)
        canvas.owners[wrote] = np.where(before == NO_OWNER, number, np.minimum(before, number))
        if kept_runs:
            loaded = np.unique(np.concatenate(read)) if read else np.zeros(0, dtype=np.int64)
            canvas.touched[pid] = Touched(pid, _runs(wrote, kept_runs), _runs(loaded, kept_runs))
    return True


def _elements(event: Any, canvas: _Canvas) -> Elements:
    """The elements of the tensor that an access touches, all of those that share a byte with it."""
    active = np.broadcast_to(np.asarray(event.active, dtype=bool), event.addresses.shape)
    starts = np.asarray(event.addresses, dtype=np.int64)[active].ravel() - canvas.tensor.address
    size = canvas.tensor.element_bytes
    first, last = starts // size, (starts + event.access.element_bytes - 1) // size
    wide = int((last - first).max(initial=0))
    found = np.concatenate([np.minimum(first + k, last) for k in range(wide + 1)])
    return found[(found >= 0) & (found < canvas.elements)]


def _runs(elements: Elements, most: int) -> tuple[tuple[int, int], ...]:
    """Sorted elements as half-open runs."""
    if not len(elements):
        return ()
    breaks = np.flatnonzero(np.diff(elements) != 1) + 1
    starts = elements[np.concatenate(([0], breaks))]
    ends = elements[np.concatenate((breaks - 1, [len(elements) - 1]))] + 1
    return tuple(zip(starts[:most].tolist(), ends[:most].tolist(), strict=True))


def _owned(owners: Elements) -> tuple[tuple[int, int, int], ...]:
    """(start, end, owner) runs of the elements that somebody writes."""
    breaks = np.flatnonzero(np.diff(owners) != 0) + 1
    starts = np.concatenate(([0], breaks))
    ends = np.concatenate((breaks, [len(owners)]))
    kept = owners[starts] != NO_OWNER
    return tuple(zip(starts[kept].tolist(), ends[kept].tolist(), owners[starts][kept].tolist(), strict=True))


def _map(name: str, canvas: _Canvas, most_runs: int, *, complete: bool) -> TensorMap:
    owners = _owned(canvas.owners)
    return TensorMap(
        tensor=name,
        dtype=canvas.tensor.dtype,
        shape=canvas.tensor.shape,
        strides=canvas.tensor.strides,
        elements=canvas.elements,
        owners=owners[:most_runs],
        programs=tuple(canvas.touched.values()),
        complete=complete and len(owners) <= most_runs,
        contested=_runs(np.flatnonzero(canvas.contested), most_runs),
    )
