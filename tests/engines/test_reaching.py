"""What a race says about its shared byte, against the bytes and partitions that the two accesses really touch."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import product

import engine_programs as make
import pytest

from racefree.access import Dim, Pattern
from racefree.engines.check import check
from racefree.engines.program import EngineProgram
from racefree.engines.reaching import reach
from racefree.engines.records import EngineAccess, EngineRace, Reached
from racefree.report.addresses import arithmetic


def addresses(pattern: Pattern) -> set[int]:
    """Every address of a pattern, one by one."""
    found = set()
    for indices in product(*(range(dim.count) for dim in pattern.dims)):
        start = pattern.base_bytes + sum(dim.step_bytes * at for dim, at in zip(pattern.dims, indices, strict=True))
        found |= set(range(start, start + pattern.elem_bytes))
    return found


def touched(program: EngineProgram, side: EngineAccess) -> set[tuple[int | None, int]]:
    """Every (partition, byte) that the instruction of one side reads, or else writes, in its buffer."""
    found: set[tuple[int | None, int]] = set()
    for row in program.accesses_of(side.instruction):
        writes = bool(int(program.accesses.flags[row]) & make.W)
        if writes == side.write and program.buffers[int(program.accesses.buffer[row])].name == side.buffer:
            footprint = program.footprints[int(program.accesses.footprint[row])]
            partitions = addresses(footprint.partitions) if footprint.partitions else {None}
            found |= set(product(partitions, addresses(footprint.bytes)))
    return found


def chains(said: str) -> Iterator[tuple[str, list[str], dict[str, int]]]:
    """(axis, equal expressions, the bound of each index) of what a report says about an address."""
    for axis, equal, bounds in re.findall(r"(partition|byte) ([^(,]*[^(, ])(?: \((.*?)\))?(?:, |$)", said):
        pairs = [bound.split(" < ") for bound in bounds.split(", ") if bound]
        yield axis, equal.split(" = "), {name: int(bound) for name, bound in pairs}


def values(reached: Reached, bounds: dict[str, int]) -> dict[str, int]:
    """The values of the indices that a formula names."""
    moving = [
        at for dim, at in zip(reached.pattern.dims, reached.indices, strict=True) if dim.step_bytes and dim.count > 1
    ]
    names = [name for name in bounds if name != "b"]
    return dict(zip(names, moving, strict=True)) | ({"b": reached.inside} if "b" in bounds else {})


def assert_says(reached: Reached, axis: str, said: str) -> None:
    """The formula at the values is the address, so are the expressions after it, and its range is the pattern."""
    ((_, (formula, *rest), bounds),) = [chain for chain in chains(said) if chain[0] == axis]
    here = values(reached, bounds)
    assert all(0 <= here[name] < bound for name, bound in bounds.items())
    assert [eval(formula, {}, here), *(eval(one, {}, {}) for one in rest)] == [reached.at] * (1 + len(rest))
    everywhere = product(*(range(bound) for bound in bounds.values()))
    assert {eval(formula, {}, dict(zip(bounds, at, strict=True))) for at in everywhere} == addresses(reached.pattern)


def assert_reached(program: EngineProgram, race: EngineRace) -> None:
    for side in (race.first, race.second):
        assert (race.partition, race.byte) in touched(program, side)
        said = arithmetic(side.reached_byte, side.reached_partition)
        assert side.reached_byte is not None
        assert side.reached_byte.at == race.byte
        assert_says(side.reached_byte, "byte", said)
        assert (side.reached_partition is None) == (race.partition is None)
        if side.reached_partition is not None:
            assert side.reached_partition.at == race.partition
            assert_says(side.reached_partition, "partition", said)


@pytest.mark.parametrize("batch", range(4))
def test_races_of_random_programs(batch: int) -> None:
    races = 0
    for seed in range(40 * batch, 40 * batch + 40):
        rng = random.Random(seed)
        program = make.random_program(rng, rng.randrange(2, 20), rng.randrange(1, 5))
        for race in (race for order in check(program, order="dependencies").orders for race in order.races):
            assert_reached(program, race)
            races += 1
    assert races > 50


def random_pattern(rng: random.Random, most: int) -> Pattern:
    dims = tuple(
        Dim(rng.choice([-7, -4, -1, 0, 1, 2, 3, 6, 16]), rng.randrange(1, 4)) for _ in range(rng.randrange(most))
    )
    return Pattern(rng.randrange(-20, 20), rng.choice([1, 2, 4, 5]), dims)


def test_random_patterns() -> None:
    """Any steps, none, and more of them than there are letters."""
    met = 0
    rng = random.Random(5)
    for most in [4] * 300 + [9] * 10:
        one, other = random_pattern(rng, most), random_pattern(rng, most)
        sides = reach(one, other)
        assert (sides[0] is not None) == bool(addresses(one) & addresses(other))
        for reached, pattern in zip(sides, (one, other), strict=True):
            if reached is not None:
                met += 1
                assert reached.pattern == pattern
                assert_says(reached, "byte", arithmetic(reached, None))
    assert met > 100


@pytest.mark.parametrize(
    ("pattern", "indices", "inside", "said"),
    [
        (Pattern(256, 4, (Dim(64, 4), Dim(4, 16))), (2, 3), 0,
         "byte 256 + i*64 + j*4 + b = 256 + 2*64 + 3*4 + 0 = 396 (i < 4, j < 16, b < 4)"),
        (Pattern(0, 1, (Dim(1, 8), Dim(0, 5), Dim(9, 1))), (6, 4, 0), 0, "byte i = 6 (i < 8)"),
        (Pattern(30, 1, (Dim(-1, 8), Dim(-10, 2))), (6, 1), 0, "byte 30 - i - j*10 = 30 - 6 - 1*10 = 14 (i < 8, j < 2)"),
        (Pattern(0, 1, (Dim(-1, 8),)), (6,), 0, "byte -i = -6 (i < 8)"),
        (Pattern(7, 1), (), 0, "byte 7"),
        (Pattern(7, 2), (), 1, "byte 7 + b = 7 + 1 = 8 (b < 2)"),
    ],
)  # fmt: skip
def test_words(pattern: Pattern, indices: tuple[int, ...], inside: int, said: str) -> None:
    start = pattern.base_bytes + sum(dim.step_bytes * at for dim, at in zip(pattern.dims, indices, strict=True))
    assert arithmetic(Reached(pattern, indices, inside, start + inside), None) == said


def test_a_formula_that_is_wrong_is_seen() -> None:
    """The check above tells another step, start, index or bound."""
    reached = Reached(Pattern(256, 1, (Dim(64, 4),)), (2,), 0, 384)
    for said in ("256 + i*32 = 256 + 2*32 = 320 (i < 4)", "0 + i*64 = 0 + 2*64 = 128 (i < 4)",
                 "256 + i*64 = 256 + 1*64 = 320 (i < 4)", "256 + i*64 = 256 + 2*64 = 384 (i < 5)"):  # fmt: skip
        with pytest.raises(AssertionError):
            assert_says(reached, "byte", f"byte {said}")
