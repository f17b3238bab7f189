"""Builds the engine program of one function: what runs where, which bytes it touches, and all that orders it.

Readings of the format that decide the answer:

* work with a queue, and every opcode of the DMA family, completes off its engine's timeline;
* a trigger starts one such piece of work for each descriptor block it names, and waits name the block;
* an instruction on engine ALL is one copy on each data-path engine; copies of a barrier meet, others do not;
* an update arrives when its work has completed; asynchronous work that adds several counts adds them one by one while it
  runs, so only the last one tells that it has completed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from racefree.access import Site
from racefree.engines.builder import ProgramBuilder
from racefree.engines.program import DependencyKind, EngineProgram, InstructionFlag, Timing, UpdateMode
from racefree.errors import InputError, Refused
from racefree.neuron.blocks import Straight, flow
from racefree.neuron.document import (
    DATA_PATH_ENGINES,
    Dependency,
    DmaBlock,
    EdgeKind,
    Function,
    Instruction,
    Module,
    PhysicalAp,
    SyncInfo,
)
from racefree.neuron.naming import Instances
from racefree.neuron.opcodes import DMA_FAMILY, EXEMPT_OPCODES, INDIRECT_OPCODES, KNOWN_OPCODES, OPAQUE_OPCODES
from racefree.neuron.touching import Touching

BARRIERS = frozenset({"AllEngineBarrier", "CoreBarrier"})
RESETS = "GroupResetSemaphores"
DROPPED = frozenset({"Return"})
UNASSIGNED_LIMIT = 32

_KINDS = {
    EdgeKind.Invalid: DependencyKind.INVALID,
    EdgeKind.Ordered: DependencyKind.ORDERED,
    EdgeKind.Anti: DependencyKind.ANTI,
    EdgeKind.Output: DependencyKind.OUTPUT,
    EdgeKind.Flow: DependencyKind.FLOW,
}


Owner = Instruction | DmaBlock


@dataclass(frozen=True, slots=True)
class Lowered:
    """A program, and the rows that touch memory with what they stand for, in document order."""

    program: EngineProgram
    owners: tuple[tuple[int, Owner], ...]


def lower(module: Module, function: Function) -> EngineProgram:
    """The program of one function. Raises InputError for names that do not exist.

    What has no meaning here becomes a refusal of the program, so that a race elsewhere in it is still found.
    """
    return lower_with_owners(module, function).program


def lower_with_owners(module: Module, function: Function) -> Lowered:
    """The same, with the way back from rows to the document."""
    try:
        return _lowered(module, function)
    except OverflowError:
        raise InputError(f"function {function.name}: an address or a count does not fit 64 bits") from None
    except Refused as refused:
        # What spoils the function as a whole leaves a program without instructions, and the refusal.
        builder = ProgramBuilder(_name(module, function))
        builder.refuse(refused.refusal.kind, refused.refusal.reason, refused.refusal.source)
        return Lowered(builder.build(), ())


def _name(module: Module, function: Function) -> str:
    return function.name if module.core is None else f"core {module.core} {function.name}"


def _lowered(module: Module, function: Function) -> Lowered:
    lowering = _Lowering(module, function)
    shape = flow(function)
    for number, straight in enumerate(shape.straights):
        lowering.block(number, straight)
    for repeat in shape.repeats:
        lowering.builder.loop(repeat.first, repeat.last, trips=repeat.trips)
    lowering.order()
    lowering.touching.refuse_unclear_aliases()
    return Lowered(lowering.builder.build(), tuple(lowering.owners))


def lower_all(module: Module) -> list[EngineProgram]:
    """One program a function, in document order."""
    return [lower(module, function) for function in module.functions]


class _Lowering:
    """The state of one function's lowering: rows go in first, then the order between them, because names look ahead."""

    def __init__(self, module: Module, function: Function) -> None:
        self.builder = ProgramBuilder(_name(module, function))
        self.function = function
        self.touching = Touching(self.builder, function)
        self.instances = Instances()
        self.queues = {queue.name for queue in module.queues}
        self.dma_blocks: dict[str, list[tuple[str, DmaBlock]]] = defaultdict(list)
        for queue in module.queues:
            for block in queue.blocks:
                self.dma_blocks[block.name].append((queue.name, block))
        self.pending: list[tuple[int, int, Instruction]] = []
        self.asynchronous: set[int] = set()
        self.owners: list[tuple[int, Owner]] = []
        self.unassigned = 0

    # ---- rows --------------------------------------------------------------------------------------------------------

    def block(self, number: int, straight: Straight) -> None:
        self.builder.block(straight.name)
        for instruction in straight.instructions:
            if instruction.opcode in DROPPED:
                continue
            self.refuse_unknown_work(instruction)
            if instruction.symbolic:
                self.builder.refuse(
                    "symbolic-instruction",
                    f"{instruction.name} carries {instruction.symbolic}: it does not simply run once",
                    _site(instruction),
                )
            if instruction.engine == "ALL":
                self.everywhere(number, instruction)
            else:
                self.single(number, instruction)

    def refuse_unknown_work(self, instruction: Instruction) -> None:
        opcode = instruction.opcode
        if opcode in OPAQUE_OPCODES:
            reason = f"{instruction.name} ({opcode}) runs code whose accesses its operands need not show"
            self.builder.refuse("opaque-instruction", reason, _site(instruction))
        elif opcode not in KNOWN_OPCODES:
            self.builder.refuse("unknown-opcode", f"{instruction.name} has opcode {opcode}", _site(instruction))

    def everywhere(self, block: int, instruction: Instruction) -> None:
        """One copy on each data-path engine; a barrier's copies meet."""
        builder = self.builder
        engines = [builder.engine(name) for name in DATA_PATH_ENGINES]
        if instruction.opcode in BARRIERS:
            rows = builder.barrier(instruction.name, instruction.opcode, engines)
        else:
            rows = tuple(
                builder.instruction(f"{instruction.name}-{name}", instruction.opcode, engine, flags=_flags(instruction))
                for name, engine in zip(DATA_PATH_ENGINES, engines, strict=True)
            )
        if instruction.outs or instruction.ins:
            for row in rows:
                self.operands(row, instruction)
        self.instances.add(instruction.name, block, rows[0], rows)
        for row in rows:
            self.resets(row, instruction)
            self.pending.append((block, row, instruction))

    def single(self, block: int, instruction: Instruction) -> None:
        builder = self.builder
        if instruction.opcode == "AllEngineBarrier":
            builder.refuse(
                "expanded-barrier",
                f"{instruction.name} is an all-engine barrier on engine {instruction.engine} alone",
                _site(instruction),
            )
        if instruction.queue and self.queues and instruction.queue not in self.queues:
            raise InputError(
                f"function {self.function.name}: {instruction.name} uses queue {instruction.queue!r}, "
                "which the module does not have"
            )
        trigger = instruction.opcode == "DMATrigger" or bool(instruction.dma_blocks)
        flags = _flags(instruction) & ~InstructionFlag.ASYNC if trigger else _flags(instruction)
        queue = -1 if trigger or not instruction.queue else builder.queue(instruction.queue)
        engine, site = self.engine(instruction), _site(instruction)
        row = builder.instruction(instruction.name, instruction.opcode, engine, queue=queue, flags=flags, site=site)
        self.operands(row, instruction)
        self.resets(row, instruction)
        self.pending.append((block, row, instruction))
        if flags & InstructionFlag.ASYNC:
            self.asynchronous.add(row)
        if not trigger:
            self.instances.add(instruction.name, block, row)
            return
        started = tuple(self.descriptor(block, name, instruction) for name in instruction.dma_blocks)
        self.instances.add(instruction.name, block, row, (row, *started))

    def engine(self, instruction: Instruction) -> int:
        """The timeline of an instruction; one without an engine is ordered with nothing."""
        if instruction.engine != "Unassigned":
            return self.builder.engine(instruction.engine)
        self.unassigned += 1
        if self.unassigned == UNASSIGNED_LIMIT:
            self.builder.refuse("unassigned-engine", "many instructions have no engine yet: check a scheduled program")
        return self.builder.engine(f"Unassigned {min(self.unassigned, UNASSIGNED_LIMIT)}")

    def descriptor(self, block: int, name: str, trigger: Instruction) -> int:
        """The work of one descriptor block, issued where its trigger stands."""
        described = self.described(name, trigger)
        for opcode in described.opcodes:
            if opcode not in KNOWN_OPCODES:
                self.builder.refuse("unknown-opcode", f"descriptor block {name} has a {opcode}", _site(trigger))
        flags = InstructionFlag.ASYNC | _uninitialised(described.can_read_uninit or trigger.can_read_uninit)
        queue = self.builder.queue(trigger.queue) if trigger.queue else -1
        engine = self.builder.engine(trigger.engine)
        row = self.builder.instruction(name, "DMABlock", engine, queue=queue, flags=flags, site=_site(trigger))
        self.operands(row, described)
        self.updates(row, described.sync, asynchronous=True)
        if described.sync.waits or described.sync.odd:
            self.builder.refuse("descriptor-wait", f"descriptor block {name} waits on its own", order="semaphores")
        self.instances.add(name, block, row)
        return row

    def described(self, name: str, trigger: Instruction) -> DmaBlock:
        """The descriptor block a trigger names: that of its own queue if several queues have one."""
        found = self.dma_blocks.get(name, [])
        if len(found) > 1:
            found = [(queue, block) for queue, block in found if queue == trigger.queue]
            if len(found) != 1:
                raise Refused(
                    "ambiguous-name", f"{trigger.name} triggers {name}, which several descriptor blocks are called"
                )
        if not found:
            raise InputError(
                f"function {self.function.name}: {trigger.name} triggers {name!r}, which no queue of the module has"
            )
        return found[0][1]

    def operands(self, row: int, owner: Owner) -> None:
        if owner.ins or owner.outs or owner.indirections:
            self.owners.append((row, owner))
        indirect = is_indirect(owner)
        for group, writes, anywhere in (
            (owner.ins, False, indirect),
            (owner.indirections, False, False),
            (owner.outs, True, indirect),
        ):
            for operand in group:
                try:
                    self.touching.add(row, operand, writes=writes, anywhere=anywhere)
                except Refused as refused:
                    refusal = refused.refusal
                    source = _site(owner) if isinstance(owner, Instruction) else None
                    self.builder.refuse(refusal.kind, f"{owner.name}: {refusal.reason}", source)

    # ---- order -------------------------------------------------------------------------------------------------------

    def order(self) -> None:
        """Dependencies, waits and updates, once every name has its place."""
        for block, row, instruction in self.pending:
            for dependency in instruction.dependencies:
                self.dependency(block, row, instruction, dependency, dependency.distances)
            for dependency in instruction.loop_carried:
                self.dependency(block, row, instruction, dependency, dependency.distances or (1,))
            self.waits(block, row, instruction)
            copies, asynchronous = instruction.engine == "ALL", row in self.asynchronous
            self.updates(row, instruction.sync, asynchronous=asynchronous, copies=copies, name=instruction.name)

    def dependency(
        self, block: int, row: int, instruction: Instruction, edge: Dependency, distances: Sequence[int]
    ) -> None:
        builder = self.builder
        if edge.source not in self.instances:
            raise InputError(
                f"function {self.function.name}: {instruction.name} depends on {edge.source!r}, "
                "which no instruction is called"
            )
        if edge.kind is EdgeKind.Invalid:
            builder.refuse(
                "edge-kind",
                f"{instruction.name} depends on {edge.source} by an edge kind without a documented meaning",
                order="dependencies",
            )
            return
        if distances:
            sources = self.instances.before(edge.source, block, row) + self.instances.after(edge.source, block, row)
        else:
            sources = self.instances.before(edge.source, block, row) or [
                one for one in self.instances.after(edge.source, block, row) if one != row
            ]
        if len(sources) != 1:
            itself = self.instances.after(edge.source, block, row)[:1] == [row]
            what = "several instructions" if sources else "itself" if itself else "an instruction of a later block"
            builder.refuse(
                "ambiguous-dependency",
                f"{instruction.name} depends on {edge.source}, which is {what}",
                order="dependencies",
            )
            return
        for source in self.instances.completions(sources[0]):
            if source == row and not distances:
                continue
            for distance in distances or (0,):
                builder.depends(row, source, _KINDS[edge.kind], distance=distance)

    def waits(self, block: int, row: int, instruction: Instruction) -> None:
        sync = instruction.sync
        if sync.odd:
            self.unknown_sync(instruction.name, sync.odd)
        for wait in sync.waits:
            if wait.odd or wait.value is None:
                self.unknown_sync(instruction.name, wait.odd)
                continue
            candidates = self.instances.before(wait.source, block, row) if wait.source in self.instances else []
            producer = candidates[-1] if len(candidates) == 1 else -1
            self.builder.wait(row, self.builder.semaphore(str(wait.id)), wait.value, producer=producer)

    def updates(self, row: int, sync: SyncInfo, *, asynchronous: bool, copies: bool = False, name: str = "") -> None:
        if copies and sync.updates:
            self.builder.refuse(
                "update-on-all", f"{name} updates a semaphore on every engine: how often is unknown", order="semaphores"
            )
            return
        for update in sync.updates:
            if update.odd:
                self.unknown_sync(name, update.odd)
                continue
            semaphore, last = self.builder.semaphore(str(update.id)), update.value
            if asynchronous and last > 1:
                self.builder.update(row, semaphore, last - 1, timing=Timing.RUNNING)
                last = 1
            self.builder.update(row, semaphore, last)

    def resets(self, row: int, instruction: Instruction) -> None:
        if instruction.opcode == RESETS:
            if not instruction.control.sema_group:
                self.builder.refuse(
                    "reset-group", f"{instruction.name} resets semaphores but does not say which", order="semaphores"
                )
            for semaphore in instruction.control.sema_group:
                self.builder.update(row, self.builder.semaphore(str(semaphore)), 0, mode=UpdateMode.SET)
        elif instruction.control.is_reset_sema:
            self.builder.refuse(
                "reset-group", f"{instruction.name} resets semaphores but does not say which", order="semaphores"
            )

    def unknown_sync(self, name: str, odd: str) -> None:
        self.builder.refuse(
            "unknown-sync", f"{name}: a wait or an update with {odd} has no documented meaning", order="semaphores"
        )


def is_indirect(owner: Owner) -> bool:
    """Whether index operands decide which bytes are touched, and no operand says how far they reach."""
    named = isinstance(owner, Instruction) and owner.opcode in INDIRECT_OPCODES
    if not (named or owner.indirections):
        return False
    return not any(isinstance(one, PhysicalAp) and one.dynamic for one in (*owner.ins, *owner.outs))


def _uninitialised(marked: bool) -> InstructionFlag:
    return InstructionFlag.READS_UNINITIALISED if marked else InstructionFlag.NONE


def _flags(instruction: Instruction) -> InstructionFlag:
    flags = _uninitialised(instruction.can_read_uninit)
    opcode = instruction.opcode
    if instruction.queue or opcode in DMA_FAMILY or opcode.startswith("Collective"):
        flags |= InstructionFlag.ASYNC
    if opcode in EXEMPT_OPCODES:
        flags |= InstructionFlag.EXEMPT_OPCODE
    if opcode == "IndirectSaveAccumulate":
        flags |= InstructionFlag.ACCUMULATES
    return flags


def _site(instruction: Instruction) -> Site | None:
    if not instruction.line and not instruction.file:
        return None
    return Site(instruction.file, instruction.line, function=instruction.operation)
