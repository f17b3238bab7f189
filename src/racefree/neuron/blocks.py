"""The control flow of a function as straight-line blocks and loops over them; every other shape is refused by name."""

from __future__ import annotations

from dataclasses import dataclass

from racefree.errors import InputError, Refused
from racefree.neuron.document import Block, Function, Instruction

BRANCHES = ("CompareAndBranch", "UnconditionalBranch")
STRUCTURED = ("Loop", "DynamicForLoop", "DoWhile")
LEAVES = ("Exit", "Halt", "Break")


@dataclass(frozen=True, slots=True)
class Straight:
    """Code that runs from its first instruction to its last."""

    name: str
    instructions: tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Straights `first <= s < last` run again and again, `trips` times when known, at least once."""

    first: int
    last: int
    trips: int | None = None


@dataclass(frozen=True, slots=True)
class Flow:
    straights: tuple[Straight, ...]
    repeats: tuple[Repeat, ...]


def flow(function: Function) -> Flow:
    """Blocks in program order with their loops. Raises Refused for control flow outside the covered shapes."""
    straights: list[Straight] = []
    repeats: list[Repeat] = []
    first_of: dict[str, int] = {}
    for block in function.blocks:
        if block.name in first_of:
            raise InputError(f"function {function.name}: two blocks are called {block.name!r}")
        first_of[block.name] = len(straights)
        _lay_out(block, straights, repeats)
    repeats.extend(_back_edges(function, first_of, len(straights)))
    return Flow(tuple(straights), tuple(sorted(set(repeats), key=lambda one: (one.first, one.last))))


def _lay_out(block: Block, straights: list[Straight], repeats: list[Repeat]) -> None:
    """Cut a block at its structured loops; a loop that never runs is left out."""
    run: list[Instruction] = []
    pieces = 0
    for instruction in block.instructions:
        if not instruction.control.blocks and instruction.opcode not in STRUCTURED:
            run.append(instruction)
            continue
        trips = _trips(instruction)
        straights.append(Straight(_piece(block.name, pieces), tuple(run)))
        run, pieces = [], pieces + 1
        if trips == 0:
            continue
        first = len(straights)
        for nested in instruction.control.blocks:
            _lay_out(nested, straights, repeats)
        if len(straights) > first:
            repeats.append(Repeat(first, len(straights), trips))
    straights.append(Straight(_piece(block.name, pieces), tuple(run)))


def _piece(name: str, number: int) -> str:
    return name if number == 0 else f"{name}.{number}"


def _trips(instruction: Instruction) -> int:
    axis = instruction.control.axis
    if axis is None:
        raise Refused("loop-bounds", f"loop {instruction.name} has no constant bounds: it may not run at all")
    return axis.trips


def _back_edges(function: Function, first_of: dict[str, int], count: int) -> list[Repeat]:
    """Loops from the branches that end the blocks: one back edge a loop, the same for every engine."""
    starts = [first_of[block.name] for block in function.blocks] + [count]
    found: list[Repeat] = []
    for position, block in enumerate(function.blocks):
        following = function.blocks[position + 1].name if position + 1 < len(function.blocks) else ""
        _must_run_through(function, block)
        targets = {_targets(function, one, first_of) for one in block.instructions if one.opcode in BRANCHES}
        if len(targets) > 1:
            raise Refused("divergent-branch", f"the engines leave block {block.name} for different blocks")
        for target in sorted(next(iter(targets), ())):
            if first_of[target] <= first_of[block.name]:
                _all_engines_return(block)
                found.append(Repeat(first_of[target], starts[position + 1]))
            elif target != following:
                raise Refused("forward-branch", f"block {block.name} may jump over blocks, to {target}")
    return found


def _must_run_through(function: Function, block: Block) -> None:
    """Branches stand last on their engine, and nothing else leaves the block early."""
    branched: set[str] = set()
    for instruction in block.instructions:
        if instruction.engine in branched and instruction.opcode not in ("Return", *BRANCHES):
            raise Refused("early-exit", f"{instruction.name} follows the branch that ends {block.name} on its engine")
        if instruction.opcode in BRANCHES:
            branched.add(instruction.engine)
        elif instruction.opcode == "Call":
            raise Refused("call", f"{instruction.name} calls another function")
        elif instruction.opcode in LEAVES:
            if block is not function.blocks[-1]:
                raise Refused("early-exit", f"{instruction.opcode} {instruction.name} leaves block {block.name}")
            branched.add(instruction.engine)


def _all_engines_return(block: Block) -> None:
    """Every engine with work in the block that ends a loop branches back with the others."""
    branching = {one.engine for one in block.instructions if one.opcode in BRANCHES}
    if "ALL" in branching:
        return
    for instruction in block.instructions:
        if instruction.engine not in branching and instruction.engine not in ("ALL", "Unassigned"):
            raise Refused(
                "divergent-branch", f"engine {instruction.engine} does not repeat {block.name} with the others"
            )


def _targets(function: Function, branch: Instruction, first_of: dict[str, int]) -> frozenset[str]:
    control = branch.control
    names = [control.target] if branch.opcode == "UnconditionalBranch" else [control.on_true, control.on_false]
    given = frozenset(name for name in names if name)
    for name in sorted(given):
        if name not in first_of:
            raise InputError(f"function {function.name}: {branch.name} branches to {name!r}, which no block is called")
    if not given:
        raise InputError(f"function {function.name}: {branch.name} names no block to branch to")
    return given
