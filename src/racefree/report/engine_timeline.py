"""An engine program as a picture: its instructions on a lane per engine, what orders them, and the bytes of racing accesses."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

from racefree.access import Pattern
from racefree.engines.program import AccessFlag, EngineProgram
from racefree.engines.records import EngineAccess, EngineRace, EngineVerdict

MOST_INSTRUCTIONS = 200_000
MOST_EDGES = 400_000
MOST_RACES = 50
MOST_RUNS = 1024


def timeline(program: EngineProgram, verdict: EngineVerdict) -> dict[str, Any] | None:
    """JSON-ready columns, one entry an instruction, in document order; None for a program too large to draw.

    `at` is the earliest step at which an instruction can start when each takes one step; `edges` are what orders
    instructions of different engines, `left_out` those beyond the most that are drawn; `races` name instructions by place.
    """
    if len(program) > MOST_INSTRUCTIONS:
        return None
    edges = _edges(program)
    races = {
        (race.first.instruction, race.second.instruction): race for order in verdict.orders for race in order.races
    }
    rows = program.instructions
    return {
        "engines": list(program.engines),
        "engine": rows.engine.tolist(),
        "at": _levels(program, edges),
        "names": list(program.names),
        "opcodes": list(program.opcodes),
        "opcode": rows.opcode.tolist(),
        "edges": [list(edge) for edge in edges[:MOST_EDGES]],
        "left_out": max(0, len(edges) - MOST_EDGES),
        "races": [_race(program, race) for race in itertools.islice(races.values(), MOST_RACES)],
    }


def _edges(program: EngineProgram) -> list[tuple[int, int]]:
    """(source, target) between engines: dependencies, and the producers that waits name."""
    dependencies = program.dependencies
    waits = program.waits
    found = [
        *zip(dependencies.source.tolist(), dependencies.target.tolist(), dependencies.distance.tolist(), strict=True),
        *((p, i, 0) for p, i in zip(waits.producer.tolist(), waits.instruction.tolist(), strict=True) if p >= 0),
    ]
    engine = program.instructions.engine
    between = {
        (source, target) for source, target, distance in found if not distance and engine[source] != engine[target]
    }
    return sorted(between, key=lambda edge: (edge[1], edge[0]))


def _levels(program: EngineProgram, edges: Iterable[tuple[int, int]]) -> list[int]:
    """The earliest step of each instruction; an edge that points back in the document counts for nothing here."""
    before: dict[int, list[int]] = {}
    for source, target in edges:
        if source < target:
            before.setdefault(target, []).append(source)
    free = [0] * len(program.engines)
    level = [0] * len(program)
    for index, engine in enumerate(program.instructions.engine.tolist()):
        start = max([free[engine], *(level[source] + 1 for source in before.get(index, ()))])
        level[index] = start
        free[engine] = start + 1
    return level


def _race(program: EngineProgram, race: EngineRace) -> dict[str, Any]:
    place = {name: index for index, name in enumerate(program.names)}
    return {
        "first": race.first.instruction,
        "second": race.second.instruction,
        "after": place.get(race.last_ordered, -1) if race.last_ordered else -1,
        "until": place.get(race.first_ordered, -1) if race.first_ordered else -1,
        "type": race.race_type,
        "byte": race.byte,
        "partition": race.partition,
        "buffer": race.first.buffer,
        "bytes": [_rectangles(program, side) for side in (race.first, race.second)],
    }


def _rectangles(program: EngineProgram, side: EngineAccess) -> list[dict[str, Any]]:
    """The footprints of one side on the racing buffer: runs of partitions by runs of bytes, half open."""
    found = []
    for row in program.accesses_of(side.instruction):
        writes = bool(int(program.accesses.flags[row]) & AccessFlag.WRITE)
        if writes == side.write and program.buffers[int(program.accesses.buffer[row])].name == side.buffer:
            footprint = program.footprints[int(program.accesses.footprint[row])]
            partitions = _runs(footprint.partitions) if footprint.partitions else [(0, 1)]
            found.append({"partitions": partitions, "bytes": _runs(footprint.bytes)})
    return found


def _runs(pattern: Pattern) -> list[tuple[int, int]]:
    """A pattern as sorted runs, the first `MOST_RUNS` of its elements at least; contiguous dimensions are folded first."""
    length, dims = pattern.elem_bytes, sorted(pattern.dims, key=lambda dim: abs(dim.step_bytes))
    while dims and dims[0].step_bytes == length:
        length *= dims.pop(0).count
    starts = [pattern.base_bytes]
    for dim in dims:
        starts = [start + k * dim.step_bytes for start in starts for k in range(dim.count)][: MOST_RUNS * 4]
    runs: list[tuple[int, int]] = []
    for start in sorted(starts):
        if runs and start <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(runs[-1][1], start + length))
        else:
            runs.append((start, start + length))
    return runs[:MOST_RUNS]
