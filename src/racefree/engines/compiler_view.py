"""A program as the compiler's own checker sees it: one block at a time, its exemptions applied."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from racefree.engines.program import (
    Accesses,
    AccessFlag,
    Block,
    Dependencies,
    DependencyKind,
    EngineProgram,
    InstructionFlag,
    Instructions,
    Updates,
    Waits,
)
from racefree.engines.scan import RacingAccesses
from racefree.geometry import overlaps

_EXEMPT = np.uint8(InstructionFlag.READS_UNINITIALISED | InstructionFlag.EXEMPT_OPCODE)


def block_view(program: EngineProgram, block: Block) -> EngineProgram:
    """One block as a straight-line program: exempt instructions and unseen operands touch nothing, neighbouring
    scatter-accumulates are chained, dependencies that leave the block are gone. Instruction i is `block.first + i`.
    """
    first, last = block.first, block.last
    rows = program.instructions
    exempt = (rows.flags & _EXEMPT) != 0
    accesses = program.accesses
    seen = _inside(accesses.instruction, first, last) & ~exempt[accesses.instruction]
    seen &= (accesses.flags & np.uint8(AccessFlag.UNSEEN)) == 0
    edges = program.dependencies
    kept = _inside(edges.source, first, last) & _inside(edges.target, first, last) & (edges.distance == 0)
    chain = np.array(_accumulate_chain(program, block), dtype=np.int32).reshape(-1, 2)
    off_timeline = rows.queue[chain[:, 0]] >= 0
    chain_kind = np.where(off_timeline, DependencyKind.AFTER_START, DependencyKind.ORDERED).astype(np.uint8)
    no_rows = np.zeros(0, dtype=np.int32)
    return replace(
        program,
        names=program.names[first:last],
        instructions=Instructions(
            rows.engine[first:last], rows.queue[first:last], rows.opcode[first:last], rows.flags[first:last]
        ),
        accesses=Accesses(
            accesses.instruction[seen] - np.int32(first),
            accesses.footprint[seen],
            accesses.buffer[seen],
            accesses.flags[seen],
            accesses.dynamic[seen],
        ),
        dependencies=Dependencies(
            np.concatenate([edges.source[kept], chain[:, 0]]) - np.int32(first),
            np.concatenate([edges.target[kept], chain[:, 1]]) - np.int32(first),
            np.concatenate([edges.kind[kept], chain_kind]),
            np.zeros(int(kept.sum()) + len(chain), dtype=np.int32),
        ),
        waits=Waits(no_rows, no_rows, no_rows.astype(np.uint8), no_rows.astype(np.int64), no_rows),
        updates=Updates(no_rows, no_rows, no_rows.astype(np.uint8), no_rows.astype(np.int64), no_rows.astype(np.uint8)),
        rendezvous=(),
        blocks=(Block(block.name, 0, last - first),),
        loops=(),
        sites={index - first: site for index, site in program.sites.items() if first <= index < last},
    )


def without_same_address(program: EngineProgram, racing: RacingAccesses) -> RacingAccesses:
    """Drops the pairs that go through one run-time address of one buffer, which that checker takes for disjoint."""
    one, other = racing.rows[:, 1], racing.rows[:, 3]
    accesses = program.accesses
    same = (accesses.dynamic[one] >= 0) & (accesses.dynamic[one] == accesses.dynamic[other])
    same &= accesses.buffer[one] == accesses.buffer[other]
    return RacingAccesses(racing.rows[~same], racing.count - int(same.sum()))


def _inside(column: npt.NDArray[np.int32], first: int, last: int) -> npt.NDArray[np.bool_]:
    inside: npt.NDArray[np.bool_] = (column >= first) & (column < last)
    return inside


def _accumulate_chain(program: EngineProgram, block: Block) -> list[tuple[int, int]]:
    """Neighbouring scatter-accumulates of a block whose first written operands may share a byte, as that checker sees it."""
    flags = program.instructions.flags[block.first : block.last]
    chosen = np.flatnonzero(flags & np.uint8(InstructionFlag.ACCUMULATES)) + block.first
    return [pair for pair in pairwise(chosen.tolist()) if _first_writes_meet(program, *pair)]


def _first_writes_meet(program: EngineProgram, one: int, other: int) -> bool:
    accesses = program.accesses
    writes = [
        [row for row in program.accesses_of(index) if int(accesses.flags[row]) & AccessFlag.WRITE]
        for index in (one, other)
    ]
    if not all(writes):
        return False
    a, b = writes[0][0], writes[1][0]
    same_buffer = accesses.buffer[a] == accesses.buffer[b]
    if same_buffer and accesses.dynamic[a] >= 0 and accesses.dynamic[a] == accesses.dynamic[b]:
        return False
    left, right = program.footprints[int(accesses.footprint[a])], program.footprints[int(accesses.footprint[b])]
    if left.space != right.space:
        return False
    if left.partitions and right.partitions and overlaps(left.partitions, right.partitions) is False:
        return False
    return overlaps(left.bytes, right.bytes) is not False
