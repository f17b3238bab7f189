"""Turns operands into the accesses of an engine program, each distinct operand once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import assert_never

from racefree.engines.builder import ProgramBuilder
from racefree.engines.program import AccessFlag, MemoryKind
from racefree.errors import InputError, Refused
from racefree.neuron.document import (
    Function,
    Immediate,
    MemoryType,
    Operand,
    PhysicalAp,
    RegisterAccess,
    RegisterAp,
    SymbolicAp,
    UnknownOperand,
)
from racefree.neuron.footprint import Footprint, Place, footprints, places, space_of, whole

_INITIALISED = ("ExternalInput", "ExternalInputParameter", "Input", "Const", "Pointer")

_MEMORY_KINDS = {
    "SB": MemoryKind.SBUF,
    "PSUM": MemoryKind.PSUM,
    "REG": MemoryKind.REGISTER,
    "RNGSTATE": MemoryKind.REGISTER,
}


@dataclass(frozen=True, slots=True)
class _Touch:
    """One footprint of an operand, ready to be added; `flags` lacks the direction."""

    footprint: int
    buffer: int
    flags: AccessFlag
    dynamic: int


class Touching:
    """The memory of one function: resolves operands and adds their accesses to a builder."""

    def __init__(self, builder: ProgramBuilder, function: Function, others: tuple[Function, ...] = ()) -> None:
        self.builder = builder
        self.function = function
        self._places = places(function.allocations)
        self._owners = {other.name: other for other in others}
        self._sets: dict[str, tuple[Place, ...]] = {
            allocation.name: tuple(Place(location, allocation) for location in allocation.locations)
            for allocation in function.allocations
        }
        self._cache: dict[tuple[Operand, bool], tuple[_Touch, ...]] = {}
        self._dynamics: dict[str, int] = {}
        self.written: set[str] = set()
        self.touched: set[str] = set()

    def add(self, instruction: int, operand: Operand, *, writes: bool, anywhere: bool = False) -> None:
        """Adds what the operand touches, its whole location when it may lie `anywhere` in it.

        Raises InputError for a name that does not exist, Refused when undecidable.
        """
        touches = self._cache.get((operand, anywhere))
        if touches is None:
            touches = self._cache[operand, anywhere] = tuple(self._resolve(operand, anywhere))
        direction = AccessFlag.WRITE if writes else AccessFlag.NONE
        for touch in touches:
            self.builder.access(
                instruction, touch.footprint, touch.buffer, touch.flags | direction, dynamic=touch.dynamic
            )
        match operand:
            case PhysicalAp(memref=name):
                self.touched.add(name)
                if writes:
                    self.written.add(name)
            case RegisterAp(memset=name) | SymbolicAp(memset=name):
                inside = {place.location.name for place in self._sets.get(name, ())}
                self.touched |= inside
                if writes:
                    self.written |= inside

    def _resolve(self, operand: Operand, anywhere: bool) -> list[_Touch]:
        match operand:
            case Immediate() | RegisterAccess():
                return []
            case PhysicalAp() if anywhere:
                place = self._place(operand)
                return [self._touch(place, whole(place), AccessFlag.NONE)]
            case PhysicalAp():
                return self._physical(operand)
            case SymbolicAp(memset=memset):
                return [self._touch(place, whole(place), AccessFlag.UNSEEN) for place in self._members(memset)]
            case RegisterAp(memset=memset, register=register):
                members = self._members(memset)
                for place in members:
                    if place.location.type.on_chip:
                        raise Refused(
                            "register-address",
                            f"register {register or '?'} holds the address of an access to {place.location.name}",
                        )
                return [self._touch(place, whole(place), AccessFlag.UNSEEN) for place in members]
            case UnknownOperand(kind=kind):
                raise Refused("unknown-operand", f"operands of kind {kind!r} are not known")
            case _:
                assert_never(operand)

    def _physical(self, operand: PhysicalAp) -> list[_Touch]:
        place = self._place(operand)
        dynamic = -1
        if operand.dynamic:
            text = f"{operand.memref} {operand.ap} {operand.offset} {operand.dtype} {operand.dynamic}"
            dynamic = self._dynamics.setdefault(text, len(self._dynamics))
        return [self._touch(place, piece, AccessFlag.NONE, dynamic) for piece in footprints(operand, place)]

    def _place(self, operand: PhysicalAp) -> Place:
        if operand.owner_function and operand.owner_function != self.function.name:
            raise Refused(
                "foreign-memory", f"{operand.memref} belongs to function {operand.owner_function}, checked on its own"
            )
        place = self._places.get(operand.memref)
        if place is None:
            raise InputError(
                f"function {self.function.name}: operand names location {operand.memref!r}, which no allocation has"
            )
        return place

    def _members(self, memset: str) -> tuple[Place, ...]:
        members = self._sets.get(memset)
        if not members:
            raise InputError(
                f"function {self.function.name}: operand names location set {memset!r}, which has no locations"
            )
        return members

    def _touch(self, place: Place, piece: Footprint, flags: AccessFlag, dynamic: int = -1) -> _Touch:
        builder, location = self.builder, place.location
        space = builder.space(_MEMORY_KINDS.get(location.type.name or "", MemoryKind.DRAM), piece.space)
        buffer = builder.buffer(location.name, space, initialised=place.allocation.kind in _INITIALISED)
        partitions = piece.partitions if location.type.on_chip else None
        if not piece.exact:
            flags |= AccessFlag.INEXACT
        return _Touch(builder.footprint(space, piece.bytes, partitions), buffer, flags, dynamic)

    def refuse_unclear_aliases(self) -> None:
        """Refuses aliases that the addresses do not tell: DRAM locations said to share bytes, at addresses apart."""
        for name in sorted(self.touched):
            place = self._places.get(name)
            for alias in place.location.alias if place else ():
                other = self._places.get(alias.location)
                if place is None or other is None or alias.location not in self.touched or other == place:
                    continue
                if not {name, alias.location} & self.written or _addresses_meet(place, other):
                    continue
                self.builder.refuse(
                    "dram-alias",
                    f"{name} and {alias.location} are declared aliases, but their addresses do not overlap",
                )


def _addresses_meet(one: Place, other: Place) -> bool:
    if space_of(one) != space_of(other) or MemoryType.DRAM not in (one.location.type, other.location.type):
        return False
    first, second = whole(one).bytes, whole(other).bytes
    return (
        first.base_bytes < second.base_bytes + second.elem_bytes
        and second.base_bytes < first.base_bytes + first.elem_bytes
    )
