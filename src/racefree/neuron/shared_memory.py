"""What one core touches of memory that another core can touch too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from racefree.errors import Refused
from racefree.neuron.document import (
    Function,
    Instruction,
    MemoryType,
    Module,
    Operand,
    PhysicalAp,
    RegisterAp,
    SymbolicAp,
)
from racefree.neuron.footprint import Footprint, Place, footprints, places, whole
from racefree.neuron.lowering import Lowered, Owner, is_indirect

EXCHANGE = "GPSIMDSB2SB"
SHARED_DRAM = "shared dram"


@dataclass(frozen=True, slots=True)
class Touch:
    """One piece of memory a row touches; `space` names it across cores. `exchange` numbers core exchanges, else -1."""

    row: int
    owner: Owner
    space: str
    piece: Footprint
    write: bool
    memset: str
    buffer: str
    exchange: int


def shared_touches(
    core: int, function: Function, lowered: Lowered, others: Sequence[tuple[int, Function]]
) -> Iterator[Touch]:
    """Every access of a core to DRAM that is not its own, to its on-chip memory, and to that of another core.

    Raises Refused when an access to another core's memory does not say whose.
    """
    reach = _Reach(core, function, others)
    exchanges = -1
    for row, owner in lowered.owners:
        exchange, indirect = -1, is_indirect(owner)
        if isinstance(owner, Instruction) and owner.opcode == EXCHANGE:
            exchanges += 1
            exchange = exchanges
        for group, write in ((owner.ins, False), (owner.indirections, False), (owner.outs, True)):
            anywhere = indirect and group is not owner.indirections
            for operand in group:
                for place, space, piece in reach.of(operand, anywhere=anywhere):
                    yield Touch(row, owner, space, piece, write, place.allocation.name, place.location.name, exchange)


class _Reach:
    """What each operand of one core touches that another core can touch too, worked out once an operand."""

    def __init__(self, core: int, function: Function, others: Sequence[tuple[int, Function]]) -> None:
        self.core, self.others = core, others
        self.here = places(function.allocations)
        self.known: dict[tuple[Operand, bool], tuple[tuple[Place, str, Footprint], ...]] = {}
        self.exposed = any(
            location.type.on_chip and location.remote_target
            for _, other in others
            for allocation in other.allocations
            for location in allocation.locations
        )
        """Whether another core reaches into this one's on-chip memory."""

    def of(self, operand: Operand, *, anywhere: bool) -> tuple[tuple[Place, str, Footprint], ...]:
        found = self.known.get((operand, anywhere))
        if found is None:
            found = self.known[operand, anywhere] = tuple(
                (place, space, piece)
                for place, pieces in _pieces(operand, self.here, anywhere=anywhere)
                if self.exposed or not place.location.type.on_chip or place.location.remote_target
                for space, moved in [_across(self.core, place, pieces, operand, self.others)]
                if space
                for piece in moved
            )
        return found


def _pieces(
    operand: Operand, here: dict[str, Place], *, anywhere: bool
) -> Iterator[tuple[Place, tuple[Footprint, ...]]]:
    match operand:
        case PhysicalAp(memref=name) if name in here and anywhere:
            yield here[name], (whole(here[name]),)
        case PhysicalAp(memref=name) if name in here:
            try:
                yield here[name], footprints(operand, here[name])
            except Refused:
                return  # the core's own program carries this refusal already
        case RegisterAp(memset=name) | SymbolicAp(memset=name):
            for place in here.values():
                if place.allocation.name == name:
                    yield place, (whole(place),)


def _across(
    core: int, place: Place, pieces: tuple[Footprint, ...], operand: Operand, others: Sequence[tuple[int, Function]]
) -> tuple[str, tuple[Footprint, ...]]:
    """The name of a memory as all cores see it, empty when only this core can reach it."""
    location, allocation = place.location, place.allocation
    if not location.type.on_chip:
        if location.type in (MemoryType.RNGSTATE, MemoryType.REG):
            return "", ()
        if allocation.kind != "Internal":
            return f"dram:{location.name}", pieces
        if location.shared or location.remote_target or allocation.addr_space != "Local":
            return SHARED_DRAM, pieces
        return "", ()
    if not location.remote_target:
        return f"{location.type.name} of core {core}", pieces
    if len(others) != 1:
        raise Refused("remote-core", f"{location.name} lies on another core, and there are several others")
    number, function = others[0]
    target = places(function.allocations).get(location.remote_target)
    if target is None:
        raise Refused("remote-core", f"{location.name} stands for {location.remote_target}, which core {number} lacks")
    there = replace(location, addr=target.location.addr, base=target.location.base, bank=target.location.bank)
    moved = Place(there, allocation)
    exact = isinstance(operand, PhysicalAp) and all(piece.exact for piece in pieces)
    found = footprints(operand, moved) if exact and isinstance(operand, PhysicalAp) else (whole(moved),)
    return f"{location.type.name} of core {number}", found


def module_function(module: Module, name: str) -> Function:
    for function in module.functions:
        if function.name == name:
            return function
    raise Refused("missing-function", f"core {module.core} has no function {name}")
