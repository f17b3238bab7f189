"""Races between the cores of one logical core: conflicting accesses to shared memory that no core barrier separates.

Each core is a program of its own; they share DRAM, and a core may write the on-chip memory of the other one. Barrier
number i of one core meets barrier number i of the other, engine by engine. The compiler's check compares only accesses to
locations of one set, and takes two transfers that form one exchange as ordered; by default neither is assumed: bytes
decide, and an exchange that overlaps itself is refused.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from racefree.access import Site
from racefree.engines.dependencies import dependency_order
from racefree.engines.loops import dependency_trips, semaphore_trips
from racefree.engines.program import EngineProgram
from racefree.engines.reaching import Reaches, reach
from racefree.engines.records import Reached
from racefree.engines.semaphores import semaphore_order
from racefree.engines.timeline import unroll
from racefree.errors import Refusal, Refused
from racefree.geometry import overlaps
from racefree.neuron.bands import Bands, bands
from racefree.neuron.document import Module
from racefree.neuron.footprint import Footprint
from racefree.neuron.legality import with_opcode
from racefree.neuron.lowering import lower_with_owners
from racefree.neuron.shared_memory import Touch, module_function, shared_touches
from racefree.verdict import Status


@dataclass(frozen=True, slots=True)
class CoreAccess:
    """One side of a race between cores; `index` is the instruction's place in the core's engine program.

    `reached_byte` and `reached_partition` say how the access comes to the shared byte; DRAM has no partitions.
    """

    core: int
    index: int
    name: str
    opcode: str
    engine: str
    write: bool
    buffer: str
    site: Site | None = None
    reached_byte: Reached | None = None
    reached_partition: Reached | None = None


@dataclass(frozen=True, slots=True)
class CoreRace:
    """Two accesses of different cores that share a byte, at least one a write, with no core barrier between them."""

    race_type: str
    first: CoreAccess
    second: CoreAccess
    reason: str


@dataclass(frozen=True, slots=True)
class CoreVerdict:
    """The verdict on one function of a logical core under one order; `ok` when every conflicting pair is separated."""

    function: str
    order: str
    status: Status
    races: tuple[CoreRace, ...] = ()
    refusals: tuple[Refusal, ...] = ()


@dataclass(frozen=True, slots=True)
class _Core:
    number: int
    program: EngineProgram
    bands: Bands
    touches: tuple[Touch, ...]


def check_cores(
    cores: Sequence[Module], *, order: str = "dependencies", compiler_rules: bool = False
) -> tuple[CoreVerdict, ...]:
    """One verdict a function of the first core; none for a single core. `order` is "dependencies" or "semaphores".

    `compiler_rules` compares only accesses to one location set and takes exchanges as ordered, as the compiler does.
    """
    if len(cores) < 2:
        return ()
    return tuple(_check_function(function.name, cores, order, compiler_rules) for function in cores[0].functions)


def _check_function(name: str, cores: Sequence[Module], order: str, compiler_rules: bool) -> CoreVerdict:
    refusals: list[Refusal] = []
    sides: list[_Core] = []
    try:
        _refuse_unequal_barriers(name, cores)
        functions = [module_function(module, name) for module in cores]
        for number, module in enumerate(cores):
            lowered = lower_with_owners(module, functions[number])
            refusals += [one.refusal for one in lowered.program.refusals if one.order in ("both", order)]
            others = [(at, other) for at, other in enumerate(functions) if at != number]
            touches = tuple(shared_touches(number, functions[number], lowered, others))
            sides.append(_Core(number, lowered.program, _bands(lowered.program, order), touches))
    except Refused as refused:
        return CoreVerdict(name, order, Status.UNSUPPORTED, (), (*refusals, refused.refusal))
    races: list[CoreRace] = []
    for at, one in enumerate(sides):
        for other in sides[at + 1 :]:
            for found in _between(one, other, compiler_rules):
                if isinstance(found, CoreRace):
                    races.append(found)
                else:
                    refusals.append(found)
    status = Status.RACES if races else Status.UNSUPPORTED if refusals else Status.OK
    return CoreVerdict(name, order, status, tuple(races), tuple(dict.fromkeys(refusals)))


def _refuse_unequal_barriers(name: str, cores: Sequence[Module]) -> None:
    """Barriers pair up by their number, so every core must pass the same ones."""
    passed = [
        [(one.engine, one.control.id) for one in with_opcode(module_function(module, name), "CoreBarrier")]
        for module in cores
    ]
    if any(sequence != passed[0] for sequence in passed):
        raise Refused("core-barriers", f"the cores do not pass the same core barriers in {name}")


def _bands(program: EngineProgram, order: str) -> Bands:
    """Bands over every unrolling that shows all behaviours; the widest band of an instruction counts."""
    for loop in program.loops:
        for row in range(program.blocks[loop.first].first, program.blocks[loop.last - 1].last):
            if program.opcodes[program.instructions.opcode[row]] == "CoreBarrier":
                raise Refused("barrier-in-loop", f"core barrier {program.names[row]} stands in a loop")
    found: Bands | None = None
    for trips in dependency_trips(program) if order == "dependencies" else semaphore_trips(program):
        lines = unroll(program, trips)
        now = bands(dependency_order(lines) if order == "dependencies" else semaphore_order(lines).order)
        if found is not None:
            now = replace(now, after=np.minimum(found.after, now.after), until=np.maximum(found.until, now.until))
        found = now
    if found is None:
        raise Refused("loop-distance", "no unrolling shows all behaviours of this program")
    return found


def _grouped(touches: Sequence[Touch]) -> dict[str, dict[tuple[Footprint, bool, str], list[Touch]]]:
    """Touches by memory, and there by what they touch: equal ones are compared once."""
    groups: dict[str, dict[tuple[Footprint, bool, str], list[Touch]]] = defaultdict(lambda: defaultdict(list))
    for touch in touches:
        groups[touch.space][touch.piece, touch.write, touch.memset].append(touch)
    return groups


def _between(one: _Core, other: _Core, compiler_rules: bool) -> Iterator[CoreRace | Refusal]:
    """Races between two cores, once a pair of instructions, and what could not be told."""
    mine, theirs = _grouped(one.touches), _grouped(other.touches)
    seen: set[tuple[int, int]] = set()
    for space in sorted(mine.keys() & theirs.keys()):
        for (piece, writes, memset), ours in mine[space].items():
            for (their_piece, they_write, their_memset), others in theirs[space].items():
                if not (writes or they_write) or (compiler_rules and memset != their_memset):
                    continue
                shared = _share_bytes(piece, their_piece)
                if shared is False:
                    continue
                for first, second in _unseparated(one, ours, other, others):
                    if (first.row, second.row) in seen:
                        continue
                    exchange = first.exchange >= 0 and first.exchange == second.exchange
                    if compiler_rules and exchange:
                        continue
                    seen.add((first.row, second.row))
                    if exchange or shared is None or not (piece.exact and their_piece.exact):
                        yield _doubt(one, first, other, second, exchange)
                    else:
                        yield _race(one, first, other, second)


def _share_bytes(one: Footprint, other: Footprint) -> bool | None:
    """None when it could not be decided."""
    partitions, inside = overlaps(one.partitions, other.partitions), overlaps(one.bytes, other.bytes)
    if partitions is False or inside is False:
        return False
    return True if partitions and inside else None


def _unseparated(
    one: _Core, ours: Sequence[Touch], other: _Core, theirs: Sequence[Touch]
) -> Iterator[tuple[Touch, Touch]]:
    """Pairs with no barrier between them in any line of barriers.

    The first side is before barrier `until`, the second one after barrier `after - 1`: if that is the same barrier or a
    later one, it orders them, and so it does the other way round.
    """
    here = np.array([touch.row for touch in ours])
    there = np.array([touch.row for touch in theirs])
    open_pairs: npt.NDArray[np.bool_] = np.ones((len(here), len(there)), dtype=bool)
    for column, line in enumerate(one.bands.lines):
        if line not in other.bands.lines:
            continue
        at = other.bands.lines.index(line)
        before = one.bands.until[here, column][:, None] < other.bands.after[there, at][None, :]
        behind = other.bands.until[there, at][None, :] < one.bands.after[here, column][:, None]
        open_pairs &= ~(before | behind)
    for first, second in np.argwhere(open_pairs).tolist():
        yield ours[first], theirs[second]


def _side(core: _Core, touch: Touch) -> CoreAccess:
    instruction = core.program.instruction(touch.row)
    return CoreAccess(
        core.number,
        touch.row,
        instruction.name,
        instruction.opcode,
        instruction.engine,
        touch.write,
        touch.buffer,
        instruction.site,
    )


def _race(one: _Core, first: Touch, other: _Core, second: Touch) -> CoreRace:
    kinds = {(True, True): "WAW", (True, False): "RAW", (False, True): "WAR"}
    reason = "; ".join(_passes(core, touch) for core, touch in ((one, first), (other, second)))
    within = reach(first.piece.bytes, second.piece.bytes)
    across: Reaches = (None, None)
    if not first.piece.in_dram:
        across = reach(first.piece.partitions, second.piece.partitions)
    left = replace(_side(one, first), reached_byte=within[0], reached_partition=across[0])
    right = replace(_side(other, second), reached_byte=within[1], reached_partition=across[1])
    return CoreRace(kinds[first.write, second.write], left, right, reason)


def _passes(core: _Core, touch: Touch) -> str:
    """Where the first line of barriers leaves an instruction."""
    if not core.bands.lines:
        return f"core {core.number} passes no core barrier"
    after, until = int(core.bands.after[touch.row, 0]), int(core.bands.until[touch.row, 0])
    return (
        f"on core {core.number}, {after} core barriers are surely before it and those from number {until} on after it"
    )


def _doubt(one: _Core, first: Touch, other: _Core, second: Touch, exchange: bool) -> Refusal:
    left, right = _side(one, first), _side(other, second)
    pair = f"{left.name} of core {left.core} and {right.name} of core {right.core}"
    if exchange:
        return Refusal("core-exchange", f"{pair} form one exchange and touch the same bytes", left.site)
    return Refusal("possible-core-race", f"{pair} may touch the same bytes of {left.buffer}", left.site)
