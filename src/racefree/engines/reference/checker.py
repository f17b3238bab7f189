"""The specified checker: concurrent pairs of a block, tested for interference, the first hit raised or all collected."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from racefree.engines.program import AccessFlag, Block, EngineProgram
from racefree.engines.reference.graph import from_basic_block
from racefree.engines.reference.overlap import accesses_overlap
from racefree.errors import RacefreeError

CHUNK = 256


class DataRace(RacefreeError):
    """The program has a data race: order the two instructions that the message names, or separate their buffers."""

    def __init__(self, interference: Interference) -> None:
        self.interference = interference
        super().__init__(f"Data race detected:\n{interference}")


@dataclass(frozen=True, slots=True)
class Interference:
    """Two accesses (rows of the access table) of two instructions that share a byte, at least one of them a write."""

    first: int
    second: int
    first_access: int
    second_access: int
    text: str

    def __str__(self) -> str:
        return self.text


def check(program: EngineProgram, *, workers: int = 2) -> None:
    """Raises DataRace for the first race of the first block that has one; the order of blocks and pairs is fixed."""
    for block in program.blocks:
        work = _work(program, block)
        chunks = [work[at : at + CHUNK] for at in range(0, len(work), CHUNK)]
        with ThreadPoolExecutor(max_workers=workers) as pool:
            for hit in pool.map(lambda chunk: _first_hit(program, chunk), chunks):
                if hit is not None:
                    pool.shutdown(cancel_futures=True)
                    raise DataRace(hit)


def collect(program: EngineProgram) -> list[Interference]:
    """All racing pairs of instructions, each once, by block and document order."""
    return [hit for block in program.blocks for hit in _hits(program, _work(program, block))]


def listing(program: EngineProgram, races: list[Interference]) -> str:
    """The collected races as text."""
    lines: list[str] = []
    for number, race in enumerate(races):
        lines += [f"Race {number}:", "instructions:"]
        lines += [f"  {program.names[race.first]}", f"  {program.names[race.second]}", "data interference:"]
        lines += [f"  {line}" for line in race.text.splitlines()]
    return "\n".join(lines)


def interfere(program: EngineProgram, one: int, other: int) -> Interference | None:
    """The first pair of accesses of two instructions that overlap, a write of `one` first, reads never against reads."""
    outputs_one, inputs_one = _operands(program, one)
    outputs_other, inputs_other = _operands(program, other)
    for write in outputs_one:
        for access in outputs_other + inputs_other:
            if accesses_overlap(program, write, access):
                return _interference(program, one, other, write, access)
    for read in inputs_one:
        for write in outputs_other:
            if accesses_overlap(program, read, write):
                return _interference(program, one, other, read, write)
    return None


def _work(program: EngineProgram, block: Block) -> list[tuple[int, int]]:
    pairs = from_basic_block(program, block).concurrent_pairs()
    return sorted({tuple(sorted((a.instruction, b.instruction))) for a, b in pairs if a.instruction != b.instruction})  # type: ignore[misc]


def _first_hit(program: EngineProgram, work: list[tuple[int, int]]) -> Interference | None:
    return next(_hits(program, work), None)


def _hits(program: EngineProgram, work: list[tuple[int, int]]) -> Iterator[Interference]:
    for one, other in work:
        hit = interfere(program, one, other)
        if hit is not None:
            yield hit


def _operands(program: EngineProgram, instruction: int) -> tuple[list[int], list[int]]:
    """Written and read rows of the access table, without operands of a kind that the compiler's checker skips."""
    outputs: list[int] = []
    inputs: list[int] = []
    for row in program.accesses_of(instruction):
        flags = int(program.accesses.flags[row])
        if not flags & AccessFlag.UNSEEN:
            (outputs if flags & AccessFlag.WRITE else inputs).append(row)
    return outputs, inputs


def _interference(program: EngineProgram, one: int, other: int, access: int, other_access: int) -> Interference:
    text = f"{_side(program, access)}\n{_side(program, other_access)}"
    return Interference(one, other, access, other_access, text)


def _side(program: EngineProgram, access: int) -> str:
    rows = program.accesses
    letter = "W" if int(rows.flags[access]) & AccessFlag.WRITE else "R"
    buffer = program.buffers[int(rows.buffer[access])].name
    return f"{letter}: {buffer} By: {program.names[int(rows.instruction[access])]}"
