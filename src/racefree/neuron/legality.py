"""The sixteen structural rules for the programs of one logical core, each with the compiler's assertion code.

Before the split over cores one symbolic module stands for all of them (`verify_symbolic`); afterwards there is one
module a core (`verify_split`). Nothing is checked when the logical core has one physical core.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from racefree.errors import Refused
from racefree.neuron.document import Function, Instruction, MemoryLocation, Module

ONE_SHARD_SYMBOL = 1200
BARRIER_ON_ALL_OR_NONE = 1201
SB2SB_BALANCED = 1202
HAS_CORE_ID = 1203
NO_SHARD_SYMBOL_LEFT = 1199
SAME_FUNCTION_COUNT = 1193
FUNCTION_EXISTS = 1191
SAME_BLOCK_COUNT = 1192
SAME_BLOCK_NAMES = 1194
SAME_BARRIER_COUNT = 1187
SAME_SB2SB_COUNT = 1198
BARRIER_ID_IN_ORDER = 1188
SAME_BARRIER_NAMES = 1189
SHARED_HAS_TARGET = 1197
TARGET_AT_SAME_ADDRESS = 1195
SAME_SHARED_ADDRESSES = 1196


@dataclass(frozen=True, slots=True)
class Violation:
    """One broken rule. `core` is None when the rule is about the logical core as a whole."""

    code: int
    core: int | None
    function: str
    message: str


def instructions(function: Function) -> Iterator[Instruction]:
    """Every instruction in document order, those of nested blocks after the one that holds them."""
    stack = [iter(block.instructions) for block in reversed(function.blocks)]
    while stack:
        instruction = next(stack[-1], None)
        if instruction is None:
            stack.pop()
            continue
        yield instruction
        stack.extend(iter(block.instructions) for block in reversed(instruction.control.blocks))


def with_opcode(function: Function, opcode: str) -> list[Instruction]:
    return [one for one in instructions(function) if one.opcode == opcode]


def verify_symbolic(module: Module, *, lnc_size: int) -> tuple[Violation, ...]:
    """The three rules that hold before the split. Refused when a predicate decides which cores run an instruction."""
    if lnc_size == 1:
        return ()
    return tuple(one for function in module.functions for one in _symbolic_rules(function, lnc_size))


def _symbolic_rules(function: Function, lnc_size: int) -> Iterator[Violation]:
    if len(function.shard_ids) != 1:
        yield Violation(
            ONE_SHARD_SYMBOL,
            None,
            function.name,
            f"expected exactly one shard id symbol, found {len(function.shard_ids)}",
        )
    for barrier in with_opcode(function, "CoreBarrier"):
        active = _active(barrier, lnc_size)
        if active and len(active) != lnc_size:
            listed = ", ".join(str(core) for core in sorted(active))
            yield Violation(
                BARRIER_ON_ALL_OR_NONE,
                None,
                function.name,
                f"CoreBarrier {barrier.name} is active on core {listed} only, expected all {lnc_size} cores or none",
            )
    counts = [0] * lnc_size
    for transfer in with_opcode(function, "GPSIMDSB2SB"):
        for core in _active(transfer, lnc_size):
            counts[core] += 1
    if len(set(counts)) > 1:
        yield Violation(
            SB2SB_BALANCED, None, function.name, f"expected as many active GPSIMDSB2SB on every core, found {counts}"
        )


def _active(instruction: Instruction, lnc_size: int) -> frozenset[int]:
    """The cores that run the instruction: those it lists, all of them when it lists none."""
    if instruction.symbolic == "predicates":
        raise Refused(
            "core-predicate", f"a predicate decides which cores run {instruction.name}; its meaning is not documented"
        )
    if not instruction.control.cores_listed:
        return frozenset(range(lnc_size))
    return frozenset(instruction.control.cores) & frozenset(range(lnc_size))


def verify_split(cores: Sequence[Module]) -> tuple[Violation, ...]:
    """The thirteen rules that hold after the split; `cores[0]` is the reference the others are compared with."""
    if len(cores) <= 1:
        return ()
    found = [one for position, module in enumerate(cores) for one in _core_rules(position, module)]
    first = cores[0]
    for position, module in enumerate(cores[1:], start=1):
        found.extend(_same_shape(position, first, module))
    return tuple(found)


def _core_rules(position: int, module: Module) -> Iterator[Violation]:
    if module.core is None:
        yield Violation(HAS_CORE_ID, position, "", "expected a neuron_core_id in the module's attributes, found none")
    for function in module.functions:
        if function.shard_ids:
            yield Violation(
                NO_SHARD_SYMBOL_LEFT, position, function.name, f"a symbolic shard id is left: {function.shard_ids[0]}"
            )
        for index, barrier in enumerate(with_opcode(function, "CoreBarrier")):
            if barrier.control.id != index:
                yield Violation(
                    BARRIER_ID_IN_ORDER,
                    position,
                    function.name,
                    f"CoreBarrier {barrier.name} is number {index} but has id {barrier.control.id}",
                )


def _same_shape(core: int, first: Module, module: Module) -> Iterator[Violation]:
    if len(first.functions) != len(module.functions):
        yield Violation(
            SAME_FUNCTION_COUNT,
            core,
            "",
            f"expected {len(first.functions)} functions as on core 0, found {len(module.functions)}",
        )
    by_name = {function.name: function for function in module.functions}
    for function in first.functions:
        twin = by_name.get(function.name)
        if twin is None:
            yield Violation(FUNCTION_EXISTS, core, function.name, "the function exists on core 0 only")
            continue
        yield from _same_blocks(core, function, twin)
        yield from _same_sync(core, function, twin)
        yield from _same_shared(core, function, twin)


def _same_blocks(core: int, function: Function, twin: Function) -> Iterator[Violation]:
    if len(function.blocks) != len(twin.blocks):
        yield Violation(
            SAME_BLOCK_COUNT,
            core,
            function.name,
            f"expected {len(function.blocks)} blocks as on core 0, found {len(twin.blocks)}",
        )
    for ours, theirs in zip(function.blocks, twin.blocks, strict=False):
        if ours.name != theirs.name:
            yield Violation(
                SAME_BLOCK_NAMES,
                core,
                function.name,
                f"expected block {ours.name} as on core 0, found {theirs.name}",
            )
            return


def _same_sync(core: int, function: Function, twin: Function) -> Iterator[Violation]:
    ours, theirs = with_opcode(function, "CoreBarrier"), with_opcode(twin, "CoreBarrier")
    if len(ours) != len(theirs):
        yield Violation(
            SAME_BARRIER_COUNT,
            core,
            function.name,
            f"expected {len(ours)} CoreBarriers as on core 0, found {len(theirs)}",
        )
    for index, (here, there) in enumerate(zip(ours, theirs, strict=False)):
        if here.name != there.name:
            yield Violation(
                SAME_BARRIER_NAMES,
                core,
                function.name,
                f"CoreBarrier {index} is {there.name}, but {here.name} on core 0",
            )
    sent, received = len(with_opcode(function, "GPSIMDSB2SB")), len(with_opcode(twin, "GPSIMDSB2SB"))
    if sent != received:
        yield Violation(
            SAME_SB2SB_COUNT, core, function.name, f"expected {sent} GPSIMDSB2SB as on core 0, found {received}"
        )


def _shared(function: Function) -> list[MemoryLocation]:
    return [one for allocation in function.allocations for one in allocation.locations if one.shared]


def _same_shared(core: int, function: Function, twin: Function) -> Iterator[Violation]:
    owned = {one.name: one for allocation in function.allocations for one in allocation.locations}
    for location in _shared(twin):
        if not location.remote_target:
            yield Violation(
                SHARED_HAS_TARGET, core, function.name, f"shared location {location.name} has no remote target"
            )
            continue
        target = owned.get(location.remote_target)
        if target is None or target.addr != location.addr:
            where = "does not exist on core 0" if target is None else f"stands at {target.addr} on core 0"
            yield Violation(
                TARGET_AT_SAME_ADDRESS,
                core,
                function.name,
                f"shared location {location.name} at {location.addr}: its target {location.remote_target} {where}",
            )
    expected = sorted({one.addr for one in _shared(function)})
    found = sorted({one.addr for one in _shared(twin)})
    if expected != found:
        yield Violation(
            SAME_SHARED_ADDRESSES,
            core,
            function.name,
            f"expected shared addresses {expected} as on core 0, found {found}",
        )
