"""Which bytes an operand touches: exact patterns in one memory space, or the whole location when only run time knows.

On chip a byte has two coordinates, the partition and the byte inside the partition's row; in DRAM only the second. A
PSUM row is the banks of one partition laid end to end, so that a location may reach over a bank's end. The pattern
rules are those of the compiler: the first pair steps over partitions by the row pitch, offsets and steps count elements
of the operand's own dtype.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from racefree.access import Dim, Pattern
from racefree.errors import Refused
from racefree.neuron.document import DTYPE_BYTES, Allocation, MemoryLocation, MemoryType, Pairs, PhysicalAp

PARTITIONS = 128
PSUM_BANK_BYTES = 2048
PSUM_BANKS = 8
PIECE_LIMIT = 4096

ARENA = "dram"
"""The space of all internal DRAM tensors, whose addresses are comparable. Any other DRAM tensor has its own space."""

ONE_PARTITION = Pattern(0, 1)


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes `bytes` in every partition of `partitions`. Not exact: some of these bytes, perhaps all, perhaps none."""

    space: str
    partitions: Pattern
    bytes: Pattern
    exact: bool = True

    @property
    def in_dram(self) -> bool:
        """True where bytes have one coordinate and `partitions` says nothing."""
        return self.space.split(":")[0] == ARENA


@dataclass(frozen=True, slots=True)
class Place:
    """A location together with the allocation it belongs to."""

    location: MemoryLocation
    allocation: Allocation


def space_of(place: Place) -> str:
    """The address space a location's addresses count in."""
    location = place.location
    match location.type:
        case MemoryType.SB:
            return "SB"
        case MemoryType.PSUM:
            return "PSUM"
        case MemoryType.DRAM if place.allocation.kind == "Internal":
            return ARENA
        case MemoryType.DRAM | MemoryType.Input | MemoryType.Output:
            return f"dram:{location.name}"
        case MemoryType.RNGSTATE | MemoryType.REG:
            return f"{location.type.name}:{location.name}"
        case _:
            raise Refused("unplaced-location", f"location {location.name} has no memory: {location.type.name}")


def footprints(operand: PhysicalAp, place: Place) -> tuple[Footprint, ...]:
    """The bytes one placed pattern touches, in pieces when rows wrap or shift. Refused when they cannot be told."""
    _must_be_placed(place)
    if operand.dynamic or operand.offset is None:
        return (whole(place),)
    location = place.location
    size = DTYPE_BYTES[operand.dtype]
    if not location.type.on_chip:
        start = location.addr + size * operand.offset
        return (Footprint(space_of(place), ONE_PARTITION, Pattern(start, size, _dims(operand.ap, size))),)
    if location.dims[1] % size:
        raise Refused(
            "row-pitch",
            f"a row of {location.name} is {location.dims[1]} bytes, no multiple of a {operand.dtype} element",
        )
    if _ambiguous_bank(location):
        return tuple(_unknown_bank(piece) for piece in _on_chip(operand, location, size))
    return tuple(_on_chip(operand, location, size))


def _must_be_placed(place: Place) -> None:
    location, kind = place.location, place.allocation.kind
    if not location.allocated and (location.type.on_chip or kind == "Internal"):
        raise Refused("unplaced-location", f"location {location.name} is not allocated yet: its address means nothing")
    if kind == "Pointer" or location.pointer_to:
        raise Refused("pointer-tensor", f"location {location.name} is reached through a pointer")
    if location.type.on_chip and (len(location.dims) != 2 or min(location.dims) < 1):
        raise Refused(
            "location-shape",
            f"location {location.name} has dims {list(location.dims)}, not [partitions, bytes in each]",
        )


def whole(place: Place) -> Footprint:
    """Every byte of a location, as an upper bound of what an address known only at run time can reach."""
    _must_be_placed(place)
    location = place.location
    if not location.type.on_chip:
        size = 1
        for dim in location.dims:
            size *= dim
        return Footprint(space_of(place), ONE_PARTITION, Pattern(location.addr, max(size, 1)), exact=False)
    partitions = Pattern(location.base, 1, (Dim(1, location.dims[0]),))
    piece = Footprint(space_of(place), partitions, Pattern(_row_start(location), location.dims[1]), exact=False)
    return _unknown_bank(piece) if _ambiguous_bank(location) else piece


def _unknown_bank(piece: Footprint) -> Footprint:
    return Footprint(piece.space, piece.partitions, Pattern(0, PSUM_BANKS * PSUM_BANK_BYTES), exact=False)


def _ambiguous_bank(location: MemoryLocation) -> bool:
    """A negative bank means several banks; only when the address names the same first bank is it clear which."""
    return location.type is MemoryType.PSUM and location.bank < 0 and location.addr // PSUM_BANK_BYTES != -location.bank


def _row_start(location: MemoryLocation) -> int:
    """First byte of a location inside its partition. In PSUM it does not matter whether `addr` counts from the bank."""
    if location.type is not MemoryType.PSUM:
        return location.addr
    return abs(location.bank) * PSUM_BANK_BYTES + location.addr % PSUM_BANK_BYTES


def _dims(pairs: Pairs, size: int) -> tuple[Dim, ...]:
    return tuple(Dim(step * size, num) for step, num in pairs if num > 1)


def _on_chip(operand: PhysicalAp, location: MemoryLocation, size: int) -> Iterator[Footprint]:
    pitch = location.dims[1] // size
    row_start = _row_start(location)
    (step0, rows), *inner_list = operand.ap
    inner = tuple(inner_list)
    offset = operand.offset or 0
    column = offset % pitch
    regular = (rows == 1 or step0 % pitch == 0) and _stays_in_row(column, inner, pitch)
    if regular:
        first = location.base + offset // pitch
        steps = (Dim(step0 // pitch, rows),) if rows > 1 and step0 else ()
        pieces: Iterator[tuple[Pattern, int, Pairs]] = iter([(Pattern(first, 1, steps), column, inner)])
    else:
        pieces = _by_row(location, pitch, offset, operand.ap)
    for partitions, start, pairs in pieces:
        _within_chip(partitions, location)
        yield Footprint(
            location.type.name or "", partitions, Pattern(row_start + size * start, size, _dims(pairs, size))
        )


def _reach(pairs: Pairs) -> tuple[int, int]:
    """Smallest and largest element index the pairs add."""
    low = sum(min(0, step * (num - 1)) for step, num in pairs)
    high = sum(max(0, step * (num - 1)) for step, num in pairs)
    return low, high


def _stays_in_row(column: int, pairs: Pairs, pitch: int) -> bool:
    low, high = _reach(pairs)
    return column + low >= 0 and column + high < pitch


def _by_row(location: MemoryLocation, pitch: int, offset: int, pairs: Pairs) -> Iterator[tuple[Pattern, int, Pairs]]:
    """Split a shifted or wrapping pattern until every part lies in one row, by fixing the widest dimension first."""
    pieces = 0
    stack: list[tuple[int, Pairs]] = [(offset, pairs)]
    while stack:
        start, rest = stack.pop()
        low, high = _reach(rest)
        if (start + low) // pitch == (start + high) // pitch:
            pieces += 1
            yield Pattern(location.base + start // pitch, 1), start % pitch, rest
            if pieces > PIECE_LIMIT:
                break
            continue
        widest = max(range(len(rest)), key=lambda one: abs(rest[one][0]) * (rest[one][1] - 1))
        step, num = rest[widest]
        others = rest[:widest] + rest[widest + 1 :]
        halved = abs(step) < pitch and num > 2
        if len(stack) + (2 if halved else num) > PIECE_LIMIT:
            break
        for first, count in _halves(num) if halved else ((index, 1) for index in range(num)):
            stack.append((start + step * first, (*others, (step, count)) if count > 1 else others))
    else:
        return
    raise Refused("irregular-access", f"an access to {location.name} falls into more than {PIECE_LIMIT} pieces")


def _halves(num: int) -> list[tuple[int, int]]:
    return [(0, num // 2), (num // 2, num - num // 2)]


def _within_chip(partitions: Pattern, location: MemoryLocation) -> None:
    low = partitions.base_bytes + sum(min(0, dim.step_bytes * (dim.count - 1)) for dim in partitions.dims)
    high = partitions.base_bytes + sum(max(0, dim.step_bytes * (dim.count - 1)) for dim in partitions.dims)
    if low < 0 or high >= PARTITIONS:
        raise Refused("out-of-range", f"an access to {location.name} reaches partitions {low} to {high}")


def places(allocations: Iterable[Allocation]) -> dict[str, Place]:
    """Every location by name. A location named twice is refused: an operand could mean either."""
    found: dict[str, Place] = {}
    for allocation in allocations:
        for location in allocation.locations:
            if location.name in found:
                raise Refused("ambiguous-name", f"two memory locations are called {location.name}")
            found[location.name] = Place(location, allocation)
    return found
