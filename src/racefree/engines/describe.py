"""Turns racing accesses into records: which byte, which engines, and what almost ordered them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from racefree.engines.order import Order
from racefree.engines.program import AccessFlag, EngineProgram, InstructionFlag, MemoryKind
from racefree.engines.reaching import Reaches, reach
from racefree.engines.records import EngineAccess, EngineRace, Reached
from racefree.verdict import SourceLine


@dataclass(frozen=True, slots=True)
class Row:
    """One racing pair: steps and rows of the access table, the earlier step first."""

    first: int
    first_access: int
    second: int
    second_access: int
    queue_order_only: bool = False


def describe(order: Order, row: Row, *, order_name: str) -> EngineRace:
    """The record of one racing pair under one order."""
    program = order.timelines.program
    within, across = _shared_byte(program, row)
    space = program.spaces[int(program.footprints.space[program.accesses.footprint[row.first_access]])]
    first = _side(order, row.first, row.first_access, within[0], across[0])
    second = _side(order, row.second, row.second_access, within[1], across[1])
    last_ordered, first_ordered = _last_ordered(order, row), _first_ordered(order, row)
    return EngineRace(
        race_type=("W" if second.write else "R") + "A" + ("W" if first.write else "R"),
        first=first,
        second=second,
        byte=within[0].at if within[0] else None,
        partition=across[0].at if across[0] else None,
        bank=space.bank if space.kind is MemoryKind.PSUM else None,
        last_ordered=last_ordered,
        first_ordered=first_ordered,
        reason=_reason(first, second, last_ordered, first_ordered, order_name),
        queue_order_only=row.queue_order_only,
        hidden_by=_hidden_by(program, row, order),
        distance=int(order.timelines.distance(np.array([row.first]), np.array([row.second]))[0]),
    )


def source_line(program: EngineProgram, instruction: int) -> SourceLine | None:
    """Where an instruction comes from, when the document says so."""
    site = program.sites.get(instruction)
    return None if site is None else (site.file, site.line, site.function)


def _side(order: Order, step: int, access: int, byte: Reached | None, partition: Reached | None) -> EngineAccess:
    lines = order.timelines
    program = lines.program
    instruction = program.instruction(int(lines.instruction[step]))
    space = program.spaces[int(program.footprints.space[program.accesses.footprint[access]])]
    clock = order.clock[step].tolist()
    clock[int(lines.engine[step])] = 3 * int(lines.position[step])
    return EngineAccess(
        instruction=instruction.index,
        name=instruction.name,
        opcode=instruction.opcode,
        engine=instruction.engine,
        queue=instruction.queue,
        block=instruction.block,
        iteration=int(lines.iteration[step]),
        write=bool(int(program.accesses.flags[access]) & AccessFlag.WRITE),
        buffer=program.buffers[int(program.accesses.buffer[access])].name,
        memory=space.kind.value,
        clock=tuple((thirds + 2) // 3 for thirds in clock),
        source=source_line(program, instruction.index),
        reached_byte=byte,
        reached_partition=partition,
    )


def _shared_byte(program: EngineProgram, row: Row) -> tuple[Reaches, Reaches]:
    """How both sides come to one byte that they share, and to its partition."""
    one = program.footprints[int(program.accesses.footprint[row.first_access])]
    other = program.footprints[int(program.accesses.footprint[row.second_access])]
    across: Reaches = (None, None)
    if one.partitions is not None and other.partitions is not None:
        across = reach(one.partitions, other.partitions)
    return reach(one.bytes, other.bytes), across


def _last_ordered(order: Order, row: Row) -> str | None:
    """The last instruction of the first side's engine that is complete whenever the second side starts."""
    lines = order.timelines
    engine = int(lines.engine[row.first])
    complete = min(int(order.clock[row.second, engine]) // 3, int(lines.position[row.first]))
    if engine == int(lines.engine[row.second]):
        complete = min(int(lines.position[row.second]), int(lines.position[row.first]))
    stream = lines.streams.values[lines.streams.starts[engine] :]
    return lines.program.names[int(lines.instruction[stream[complete - 1]])] if complete > 0 else None


def _first_ordered(order: Order, row: Row) -> str | None:
    """The first instruction of the second side's engine that starts only once the first side is complete."""
    lines = order.timelines
    engine = int(lines.engine[row.second])
    begin, end = int(lines.streams.starts[engine]), int(lines.streams.starts[engine + 1])
    stream = lines.streams.values[begin:end]
    if order.row[row.first] >= 0:
        at = int(order.done[order.row[row.first], engine])
    else:
        at = int(lines.position[row.second])
        needed = 3 * int(lines.position[row.first]) + 3
        high = len(stream)
        while at < high:
            middle = (at + high) // 2
            if order.clock[stream[middle], int(lines.engine[row.first])] >= needed:
                high = middle
            else:
                at = middle + 1
    return lines.program.names[int(lines.instruction[stream[at]])] if at < len(stream) else None


def _reason(
    first: EngineAccess, second: EngineAccess, last_ordered: str | None, first_ordered: str | None, order_name: str
) -> str:
    means = "dependency" if order_name == "dependencies" else "semaphore wait"
    known = f"only {last_ordered} of {first.engine}" if last_ordered else f"nothing of {first.engine}"
    text = f"when {second.name} starts on {second.engine}, {known} is known to be complete"
    if first_ordered is None:
        return f"{text}; no {means} makes {second.engine} wait for {first.name}"
    return f"{text}; {second.engine} waits for {first.name} only at {first_ordered}"


def _hidden_by(program: EngineProgram, row: Row, order: Order) -> tuple[str, ...]:
    rules: set[str] = set()
    for access in (row.first_access, row.second_access):
        flags = int(program.instructions.flags[program.accesses.instruction[access]])
        if flags & InstructionFlag.READS_UNINITIALISED:
            rules.add("can-read-uninit")
        if flags & InstructionFlag.EXEMPT_OPCODE:
            rules.add("exempt-opcode")
        if int(program.accesses.flags[access]) & AccessFlag.UNSEEN:
            rules.add("operand-kind")
    accesses = program.accesses
    one, other = row.first_access, row.second_access
    same_expression = accesses.dynamic[one] >= 0 and accesses.dynamic[one] == accesses.dynamic[other]
    if same_expression and accesses.buffer[one] == accesses.buffer[other]:
        rules.add("same-dynamic-address")
    i, j = int(accesses.instruction[one]), int(accesses.instruction[other])
    if (
        program.block_of(i) != program.block_of(j)
        or order.timelines.iteration[row.first] != order.timelines.iteration[row.second]
    ):
        rules.add("one-block-at-a-time")
    if int(program.instructions.flags[i]) & int(program.instructions.flags[j]) & InstructionFlag.ACCUMULATES:
        rules.add("accumulate-chain")
    return tuple(sorted(rules))
