"""From access patterns to bytes, against the plain formula element by element."""

from __future__ import annotations

import random
from itertools import product

import pytest

from racefree.access import Dim, Pattern
from racefree.errors import Refused
from racefree.neuron.document import DTYPE_BYTES, Allocation, MemoryLocation, MemoryType, PhysicalAp
from racefree.neuron.footprint import Footprint, Place, footprints, whole

Byte = tuple[str, int, int]


def place(kind: MemoryType = MemoryType.SB, *, allocation: str = "Internal", **given: object) -> Place:
    values = {"name": "m", "type": kind, "dims": (8, 64)} | given
    location = MemoryLocation(**values)  # type: ignore[arg-type]
    return Place(location, Allocation("m_set", kind=allocation, locations=(location,)))


def operand(
    pairs: tuple[tuple[int, int], ...], *, dtype: str = "float32", offset: int = 0, dynamic: str = ""
) -> PhysicalAp:
    return PhysicalAp("m", "m_set", dtype, pairs, offset, dynamic)


def touched(pattern: Pattern) -> set[int]:
    moves = [[dim.step_bytes * k for k in range(dim.count)] for dim in pattern.dims]
    return {pattern.base_bytes + sum(m) + byte for m in product(*moves) for byte in range(pattern.elem_bytes)}


def covered(pieces: tuple[Footprint, ...]) -> set[Byte]:
    return {(one.space, p, b) for one in pieces for p in touched(one.partitions) for b in touched(one.bytes)}


def by_formula(given: PhysicalAp, where: Place) -> set[Byte]:
    """Row-major on chip: an element's row is its partition. No rows in DRAM."""
    location, size = where.location, DTYPE_BYTES[given.dtype]
    found = set()
    for index in product(*[range(num) for _, num in given.ap]):
        element = (given.offset or 0) + sum(k * step for k, (step, _) in zip(index, given.ap, strict=True))
        row, column = divmod(element, location.dims[1] // size) if location.type.on_chip else (0, element)
        start = location.addr + column * size
        found |= {(location.type.name or "", location.base + row, start + byte) for byte in range(size)}
    return found


def test_a_whole_tile_is_one_piece() -> None:
    (piece,) = footprints(operand(((16, 8), (1, 16))), place(addr=128, base=32))
    assert piece == Footprint("SB", Pattern(32, 1, (Dim(1, 8),)), Pattern(128, 4, (Dim(4, 16),)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "uint8", "int64"])
def test_random_on_chip_patterns(dtype: str) -> None:
    rng = random.Random(dtype)
    pitch = 64 // DTYPE_BYTES[dtype]
    shapes = {"regular": 0, "pieces": 0}
    for _ in range(400):
        first = (rng.choice((pitch, 2 * pitch, pitch + 1, 1, 0)), rng.randint(1, 3))
        inner = tuple((rng.choice((-2, 0, 1, 1, 3, pitch)), rng.randint(1, 6)) for _ in range(rng.randint(0, 2)))
        given = operand((first, *inner), dtype=dtype, offset=rng.randrange(2 * pitch, 3 * pitch))
        where = place(addr=32, base=32)
        pieces = footprints(given, where)
        assert all(one.exact for one in pieces)
        assert covered(pieces) == by_formula(given, where)
        shapes["regular" if len(pieces) == 1 else "pieces"] += 1
    assert min(shapes.values()) > 20


def test_a_row_that_wraps_continues_in_the_next_partition() -> None:
    pieces = footprints(operand(((16, 1), (1, 20))), place())
    assert covered(pieces) == {("SB", 0, b) for b in range(64)} | {("SB", 1, b) for b in range(16)}


@pytest.mark.parametrize(("pairs", "kind"), [(((16, 200),), "out-of-range"), (((-16, 2), (1, 4)), "out-of-range")])
def test_partitions_off_the_chip_are_refused(pairs: tuple[tuple[int, int], ...], kind: str) -> None:
    with pytest.raises(Refused, match=kind):
        footprints(operand(pairs), place())


def test_a_pattern_in_too_many_pieces_is_refused() -> None:
    huge = place(dims=(128, 64))
    with pytest.raises(Refused, match="irregular-access"):
        footprints(operand(((1, 70), (3, 70), (5, 70), (7, 70), (2, 70))), huge)


def test_counts_beyond_all_bounds_are_refused_at_once() -> None:
    with pytest.raises(Refused, match="irregular-access"):
        footprints(operand(((512, 10**12), (1, 10**12))), place(dims=(128, 64)))


def test_rows_must_hold_whole_elements() -> None:
    with pytest.raises(Refused, match="row-pitch"):
        footprints(operand(((16, 1), (1, 4))), place(dims=(4, 62)))


def test_dram_is_linear_and_internal_tensors_share_one_space() -> None:
    pairs = ((100, 2), (1, 3))
    internal = footprints(operand(pairs, dtype="bfloat16", offset=7), place(MemoryType.DRAM, addr=10))
    assert internal == (Footprint("dram", Pattern(0, 1), Pattern(24, 2, (Dim(200, 2), Dim(2, 3)))),)
    (external,) = footprints(operand(pairs), place(MemoryType.DRAM, allocation="ExternalInput"))
    assert external.space == "dram:m"


@pytest.mark.parametrize("addr", [0, 512, 4096 + 512])
def test_psum_addresses_mean_the_same_from_the_bank_and_from_the_window(addr: int) -> None:
    (piece,) = footprints(operand(((16, 2), (1, 16))), place(MemoryType.PSUM, addr=addr, bank=2))
    assert piece.bytes.base_bytes == 2 * 2048 + addr % 2048


def test_a_psum_location_may_reach_over_its_bank() -> None:
    (piece,) = footprints(operand(((512, 2), (1, 512))), place(MemoryType.PSUM, addr=1024, bank=1, dims=(8, 2048)))
    assert (piece.bytes.base_bytes, piece.exact) == (3072, True)


def test_a_negative_bank_is_exact_only_when_the_address_says_the_same() -> None:
    (clear,) = footprints(operand(((16, 2), (1, 16))), place(MemoryType.PSUM, addr=3 * 2048, bank=-3))
    assert (clear.exact, clear.bytes.base_bytes) == (True, 3 * 2048)
    (unclear,) = footprints(operand(((16, 2), (1, 16))), place(MemoryType.PSUM, addr=64, bank=-3))
    assert (unclear.exact, unclear.bytes) == (False, Pattern(0, 8 * 2048))


def test_an_address_known_at_run_time_may_be_anywhere_in_its_location() -> None:
    (piece,) = footprints(operand(((16, 2), (1, 4)), dynamic="{}"), place(base=64, addr=128))
    assert piece == Footprint("SB", Pattern(64, 1, (Dim(1, 8),)), Pattern(128, 64), exact=False)
    assert whole(place(MemoryType.DRAM, addr=5)) == Footprint("dram", Pattern(0, 1), Pattern(5, 512), exact=False)


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        (place(allocated=False), "unplaced-location"),
        (place(dims=()), "location-shape"),
        (place(dims=(4, 4, 16)), "location-shape"),
        (place(MemoryType.Unallocated), "unplaced-location"),
        (place(MemoryType.DRAM, pointer_to="other"), "pointer-tensor"),
        (place(MemoryType.DRAM, allocation="Pointer"), "pointer-tensor"),
    ],
)
def test_locations_without_a_known_address_are_refused(where: Place, kind: str) -> None:
    with pytest.raises(Refused, match=kind):
        footprints(operand(((16, 1), (1, 4))), where)
