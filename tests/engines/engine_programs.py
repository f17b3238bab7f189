"""Engine programs for tests: small ones by hand, random ones of every kind the model has."""

from __future__ import annotations

import random
from unittest.mock import patch

from racefree.access import Dim, Pattern
from racefree.engines import scan
from racefree.engines.builder import ProgramBuilder
from racefree.engines.footprints import Conflicts
from racefree.engines.order import Order
from racefree.engines.program import (
    AccessFlag,
    DependencyKind,
    EngineProgram,
    InstructionFlag,
    MemoryKind,
    Timing,
    UpdateMode,
    WaitMode,
)
from racefree.engines.reference.brute import Hazard

R, W = AccessFlag.NONE, AccessFlag.WRITE


class Maker(ProgramBuilder):
    """A builder with one SBUF buffer per letter, 64 bytes in each of 128 partitions."""

    def __init__(self, name: str = "test") -> None:
        super().__init__(name)
        self.sbuf = self.space(MemoryKind.SBUF, "sbuf")

    def tile(self, letter: str) -> int:
        return self.footprint(self.sbuf, Pattern(64 * ord(letter), 64), Pattern(0, 1, (Dim(1, 128),)))

    def step(
        self,
        name: str,
        engine: str,
        *,
        reads: str = "",
        writes: str = "",
        queue: str | None = None,
        after: tuple[int, ...] = (),
        waits: tuple[tuple[str, int], ...] = (),
        updates: tuple[tuple[str, int], ...] = (),
        early: bool = False,
        flags: InstructionFlag = InstructionFlag.NONE,
    ) -> int:
        """An instruction that reads and writes tiles named by letters; `early` updates once its inputs were read."""
        index = self.instruction(
            name, "Op", self.engine(engine), queue=-1 if queue is None else self.queue(queue), flags=flags
        )
        for letters, flag in ((reads, R), (writes, W)):
            for letter in letters:
                self.access(index, self.tile(letter), self.buffer(letter, self.sbuf), flag)
        for source in after:
            self.depends(index, source)
        for semaphore, value in waits:
            self.wait(index, self.semaphore(semaphore), value)
        for semaphore, amount in updates:
            timing = Timing.INPUTS_READ if early else Timing.COMPLETED
            self.update(index, self.semaphore(semaphore), amount, timing=timing)
        return index


def load_multiply_copy(*, racy: bool) -> EngineProgram:
    """Load a, multiply a into p, copy p to b, load a again, store b; racy when the reload follows the load only."""
    make = Maker("load-multiply-copy")
    load = make.step("I-0", "SP", writes="a", queue="q", updates=(("10", 16),))
    multiply = make.step("I-1", "PE", reads="a", writes="p", after=(load,), waits=(("10", 16),), updates=(("3", 1),))
    copy = make.step("I-2", "DVE", reads="p", writes="b", after=(multiply,), waits=(("3", 1),), updates=(("5", 1),))
    make.step(
        "I-3",
        "SP",
        writes="a",
        queue="q",
        after=(load,) if racy else (multiply,),
        waits=(("10", 16),) if racy else (("3", 1),),
        updates=(("10", 16),),
    )
    make.step("I-4", "SP", reads="b", writes="y", queue="q", after=(copy,), waits=(("5", 1),), updates=(("11", 16),))
    return make.build()


def random_footprint(make: ProgramBuilder, rng: random.Random, sbuf: int, dram: int) -> tuple[int, str]:
    """A small strided footprint on one of the two spaces, and the name of its buffer."""
    if rng.random() < 0.5:
        inner = Pattern(
            rng.randrange(8), rng.choice([1, 2, 4]), (Dim(rng.choice([-4, 0, 2, 3, 4]), rng.randrange(1, 4)),)
        )
        rows = Pattern(rng.randrange(3), 1, (Dim(rng.choice([1, 2]), rng.randrange(1, 3)),))
        return make.footprint(sbuf, inner, rows), "a"
    pattern = Pattern(rng.randrange(12), rng.choice([1, 2, 4]), (Dim(rng.choice([3, 5]), rng.randrange(1, 3)),))
    return make.footprint(dram, pattern), "d"


def random_timing(rng: random.Random, queue: int) -> Timing:
    """Mostly at completion; only what has a queue counts while it runs."""
    chance = rng.random()
    if chance < 0.15:
        return Timing.INPUTS_READ
    return Timing.RUNNING if queue >= 0 and chance < 0.4 else Timing.COMPLETED


def random_program(
    rng: random.Random,
    size: int,
    engines: int,
    *,
    barriers: float = 0.15,
    exact_waits: bool = True,
    compiler_flags: bool = False,
) -> EngineProgram:
    """Random accesses, dependencies, waits and updates; most waits can be satisfied, not all."""
    make = ProgramBuilder("random")
    lines = [make.engine(f"E{e}") for e in range(engines)]
    queues = [make.queue("q0"), make.queue("q1")]
    semaphores = [make.semaphore(f"s{s}") for s in range(3)]
    sbuf, dram = make.space(MemoryKind.SBUF, "sbuf"), make.space(MemoryKind.DRAM, "dram")
    spaces = {"a": sbuf, "d": dram}
    total = [0, 0, 0]
    special = [InstructionFlag.READS_UNINITIALISED, InstructionFlag.EXEMPT_OPCODE]
    special += [InstructionFlag.ACCUMULATES, InstructionFlag.ACCUMULATES] + [InstructionFlag.NONE] * 6
    while len(make) < size:
        if rng.random() < barriers and engines > 1:
            make.barrier(f"b{len(make)}", "Barrier", rng.sample(lines, rng.randrange(2, engines + 1)))
            continue
        queue = rng.choice(queues) if rng.random() < 0.3 else -1
        flags = rng.choice(special) if compiler_flags else InstructionFlag.NONE
        index = make.instruction(f"I{len(make)}", "Op", rng.choice(lines), queue=queue, flags=flags)
        for _ in range(rng.randrange(3)):
            footprint, name = random_footprint(make, rng, sbuf, dram)
            unseen = AccessFlag.UNSEEN if compiler_flags and rng.random() < 0.1 else AccessFlag.NONE
            make.access(index, footprint, make.buffer(name, spaces[name]), rng.choice([R, W]) | unseen)
        if index and rng.random() < 0.5:
            make.depends(index, rng.randrange(index))
        if rng.random() < 0.6:
            for chance in (1.0, 0.2):
                if rng.random() < chance:
                    which, amount = rng.randrange(3), rng.choice([1, 1, 2])
                    make.update(index, semaphores[which], amount, timing=random_timing(rng, queue))
                    total[which] += amount
        which = rng.randrange(3)
        if rng.random() < 0.5 and total[which]:
            mode = WaitMode.EQUAL if exact_waits and rng.random() < 0.1 else WaitMode.AT_LEAST
            make.wait(index, semaphores[which], rng.randrange(1, total[which] + 1), mode=mode)
    return make.build()


def random_pipeline(rng: random.Random, size: int, engines: int) -> EngineProgram:
    """Semaphores as compilers use them: a count belongs to one producer, a semaphore is used again only once it was waited
    for. Now and then a wait is missing, or asks for one less."""
    make = ProgramBuilder("pipeline")
    lines = [make.engine(f"E{e}") for e in range(engines)]
    dram = make.space(MemoryKind.DRAM, "dram")
    words = [make.footprint(dram, Pattern(4 * word, 4)) for word in range(3)]
    counts: dict[int, int] = {}
    known = [dict[int, int]() for _ in lines]
    while len(make) < size:
        if rng.random() < 0.05 and engines > 1:
            make.barrier(f"b{len(make)}", "Barrier", lines)
            continue
        mine = rng.randrange(engines)
        queue = make.queue(f"q{mine}") if rng.random() < 0.35 else -1
        index = make.instruction(f"I{len(make)}", "Op", lines[mine], queue=queue)
        make.access(index, rng.choice(words), make.buffer("d", dram), rng.choice([R, W]))
        semaphore = make.semaphore(f"t{mine}.{rng.randrange(2)}" if queue >= 0 else f"c{mine}")
        asked = {rng.choice(list(counts))} if counts and rng.random() < 0.7 else set[int]()
        if queue >= 0 and counts.get(semaphore, 0) > known[mine].get(semaphore, 0) and rng.random() < 0.9:
            asked.add(semaphore)
        for one in sorted(asked):
            value = counts[one] - (rng.random() < 0.1)
            if value > 0:
                make.wait(index, one, value)
                known[mine][one] = max(value, known[mine].get(one, 0))
        if rng.random() < 0.9:
            if queue >= 0 and rng.random() < 0.6:
                make.update(index, semaphore, 3, timing=Timing.RUNNING)
                counts[semaphore] = counts.get(semaphore, 0) + 3
            make.update(index, semaphore, 1)
            counts[semaphore] = counts.get(semaphore, 0) + 1
    return make.build()


def random_program_with_resets(rng: random.Random, size: int, engines: int) -> EngineProgram:
    """Resets and decrements, most of them between two barriers."""
    make = ProgramBuilder("resets")
    lines = [make.engine(f"E{e}") for e in range(engines)]
    semaphores = [make.semaphore("s0"), make.semaphore("s1")]
    dram = make.space(MemoryKind.DRAM, "dram")
    words = [make.footprint(dram, Pattern(4 * word, 4)) for word in range(3)]
    total = [0, 0]
    while len(make) < size:
        if rng.random() < 0.25 and engines > 1:
            make.barrier(f"b{len(make)}", "Barrier", lines)
            if rng.random() < 0.7:
                _reset(make, rng, lines, semaphores, total)
                if rng.random() < 0.85:
                    make.barrier(f"b{len(make)}", "Barrier", lines)
            continue
        queue = make.queue("q0") if rng.random() < 0.25 else -1
        index = make.instruction(f"I{len(make)}", "Op", rng.choice(lines), queue=queue)
        if rng.random() < 0.7:
            make.access(index, rng.choice(words), make.buffer("d", dram), rng.choice([R, W]))
        which = rng.randrange(2)
        if rng.random() < 0.05:
            make.update(index, semaphores[0], 0, mode=UpdateMode.SET)
        elif rng.random() < 0.6:
            make.update(index, semaphores[which], 1, timing=random_timing(rng, queue))
            total[which] += 1
        which = rng.randrange(2)
        if rng.random() < 0.4 and total[which]:
            make.wait(index, semaphores[which], rng.randrange(1, total[which] + 1))
    return make.build()


def _reset(make: ProgramBuilder, rng: random.Random, lines: list[int], semaphores: list[int], total: list[int]) -> None:
    which = rng.randrange(2)
    chosen = [rng.choice(lines)] if rng.random() < 0.5 else lines
    subtract = rng.random() < 0.3 and len(chosen) == 1 and total[which] > 0
    for line in chosen:
        index = make.instruction(f"r{len(make)}", "Reset", line)
        if subtract:
            make.update(index, semaphores[which], rng.randrange(1, total[which] + 1), mode=UpdateMode.SUBTRACT)
        else:
            value = rng.choice([0, 0, 1]) if len(chosen) == 1 else 0
            make.update(index, semaphores[which], value, mode=UpdateMode.SET)
    total[which] = 1


def random_loop(rng: random.Random, engines: int) -> EngineProgram:
    """Code before, inside and after a loop; half of the programs fence and reset at the end of each part."""
    make = ProgramBuilder("loop")
    lines = [make.engine(f"E{e}") for e in range(engines)]
    fence = rng.random() < 0.5
    total = [0, 0, 0]
    make.block("before")
    _loop_part(make, rng, lines, rng.randrange(4), inside=False, fence=fence, total=total)
    first = make.block("loop")
    _loop_part(make, rng, lines, rng.randrange(1, 6), inside=True, fence=fence, total=total)
    last = first + 1
    if rng.random() < 0.3:
        make.block("loop-tail")
        _loop_part(make, rng, lines, rng.randrange(3), inside=True, fence=fence, total=total)
        last += 1
    make.loop(first, last)
    make.block("after")
    _loop_part(make, rng, lines, rng.randrange(4), inside=False, fence=fence, total=total)
    return make.build()


def _loop_part(
    make: ProgramBuilder,
    rng: random.Random,
    lines: list[int],
    size: int,
    *,
    inside: bool,
    fence: bool,
    total: list[int],
) -> None:
    dram = make.space(MemoryKind.DRAM, "dram")
    start = len(make)
    semaphores = [make.semaphore(f"s{s}") for s in range(3)]
    for _ in range(size):
        queue = make.queue(rng.choice(["q0", "q1"])) if rng.random() < 0.3 else -1
        index = make.instruction(f"I{len(make)}", "Op", rng.choice(lines), queue=queue)
        if rng.random() < 0.7:
            word = make.footprint(dram, Pattern(4 * rng.randrange(3), 4))
            make.access(index, word, make.buffer("d", dram), rng.choice([R, R, W]))
        which = rng.randrange(3)
        if rng.random() < 0.6:
            amount = rng.choice([1, 1, 2])
            make.update(index, semaphores[which], amount, timing=random_timing(rng, queue))
            total[which] += amount
        which = rng.randrange(3)
        if rng.random() < 0.5 and total[which]:
            make.wait(index, semaphores[which], rng.randrange(1, total[which] + 1))
        if index > start and rng.random() < 0.5:
            make.depends(index, rng.randrange(start, index))
        elif inside and rng.random() < 0.2:
            make.depends(index, rng.randrange(start, index + 1), DependencyKind.FLOW, distance=rng.choice([1, 1, 2]))
    if fence:
        total[:] = [0, 0, 0]
        make.barrier(f"b{len(make)}", "Barrier", lines)
        for semaphore in semaphores:
            for line in lines:
                make.update(make.instruction(f"r{len(make)}", "Reset", line), semaphore, 0, mode=UpdateMode.SET)
        make.barrier(f"b{len(make)}", "Barrier", lines)


def found_hazards(order: Order, met: Conflicts) -> set[Hazard]:
    """The races of the fast engine in the form of the brute force, none listed twice, with and without a first pass."""
    direct = _hazards(order, met, suspects_from=10**9, looks=64)
    assert direct == _hazards(order, met, suspects_from=0, looks=64) == _hazards(order, met, suspects_from=0, looks=0)
    return direct


def _hazards(order: Order, met: Conflicts, *, suspects_from: int, looks: int) -> set[Hazard]:
    with patch.object(scan, "SUSPECTS_FROM", suspects_from), patch.object(scan, "MOST_LOOKS", looks):
        racing = scan.racing_accesses(order, met)
        one = scan.racing_accesses(order, met, every_pair=False)
    found: set[Hazard] = set()
    for first, x, second, y in racing.rows.tolist():
        found.add(Hazard(first, second, x, y) if x < y else Hazard(second, first, y, x))
    assert racing.count == len(racing.rows) == len(found)
    assert one.rows.tolist() == [] if not found else one.rows.tolist()[0] in racing.rows.tolist()
    return found
