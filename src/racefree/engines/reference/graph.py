"""The specified happens-before graph of one block: operations with a clock per engine, and windows of concurrent ones."""

from __future__ import annotations

from dataclasses import dataclass, field

from racefree.engines.program import (
    AccessFlag,
    Block,
    EngineProgram,
    InstructionFlag,
)
from racefree.engines.reference.overlap import accesses_overlap

UNBOUNDED = 2**31 - 1
NARROW = 10
"""Windows up to this width are scanned without bisecting first."""


@dataclass(slots=True, eq=False)
class Engine:
    """A timeline. `column` is its component in every clock, in first-seen order."""

    name: str
    column: int
    ops: list[Op] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class Op:
    """One operation on one timeline; an instruction with a queue has a second one on the queue's timeline."""

    engine: Engine
    instruction: int
    local_index: int
    skip: bool
    preds: list[Op] = field(default_factory=list)
    succs: list[Op] = field(default_factory=list)
    timestamps: list[int] = field(default_factory=list)

    def maximize(self, other: Op) -> None:
        """Joins another clock into this one, with the specified tick on the way."""
        for k, theirs in enumerate(other.timestamps):
            if theirs > self.timestamps[k]:
                self.timestamps[k] = max(self.timestamps[k] + 1, theirs)

    def less_than(self, other: Op) -> bool:
        """Strict happens-before: nowhere ahead, somewhere behind."""
        strictly = False
        for mine, theirs in zip(self.timestamps, other.timestamps, strict=True):
            if mine > theirs:
                return False
            strictly = strictly or mine < theirs
        return strictly

    def concurrent(self, other: Op) -> bool:
        """Each is ahead of the other somewhere: nothing orders them."""
        ahead = behind = False
        for mine, theirs in zip(self.timestamps, other.timestamps, strict=True):
            ahead = ahead or mine > theirs
            behind = behind or mine < theirs
        return ahead and behind


@dataclass(slots=True)
class SegBound:
    """Per engine, the latest direct predecessor and the earliest direct successor of one operation."""

    lower: list[int]
    upper: list[int]


@dataclass(slots=True, eq=False)
class Graph:
    """The operations of one block in creation order, and their engines."""

    ops: list[Op] = field(default_factory=list)
    engines: dict[str, Engine] = field(default_factory=dict)

    def add_op(self, engine_name: str, instruction: int, *, skip: bool) -> Op:
        engine = self.engines.setdefault(engine_name, Engine(engine_name, len(self.engines)))
        op = Op(engine, instruction, len(engine.ops), skip)
        engine.ops.append(op)
        self.ops.append(op)
        return op

    @staticmethod
    def add_edge(source: Op, target: Op) -> None:
        source.succs.append(target)
        target.preds.append(source)

    def compute_timestamps(self) -> None:
        """Clocks in creation order: join the own timeline, tick, join the others. A predecessor created later is lost."""
        for op in self.ops:
            op.timestamps = [0] * len(self.engines)
        for op in self.ops:
            for pred in op.preds:
                if pred.engine is op.engine:
                    op.maximize(pred)
            op.timestamps[op.engine.column] += 1
            for pred in op.preds:
                if pred.engine is not op.engine:
                    op.maximize(pred)

    # ---- windows of concurrent operations ----------------------------------------------------------------------------

    def bounds(self, op: Op) -> SegBound:
        bound = SegBound([-1] * len(self.engines), [UNBOUNDED] * len(self.engines))
        for pred in op.preds:
            column = pred.engine.column
            bound.lower[column] = max(bound.lower[column], pred.local_index)
        for succ in op.succs:
            column = succ.engine.column
            bound.upper[column] = min(bound.upper[column], succ.local_index)
        return bound

    @staticmethod
    def find_mid_seg(engine: Engine, op: Op, bound: SegBound) -> tuple[int, int]:
        """Closed window of positions on `engine` outside of which nothing is concurrent with `op`."""
        low = max(0, bound.lower[engine.column] + 1)
        upper = bound.upper[engine.column]
        high = len(engine.ops) - 1 if upper == UNBOUNDED else upper - 1
        if high - low > NARROW:
            if op.less_than(engine.ops[low]):
                high = low + 1
            elif engine.ops[high].less_than(op):
                high = _first_not_before(engine, op, low, high)
            else:
                high = _last_not_after(engine, op, low, high)
        return low, high

    def concurrent_pairs(self) -> list[tuple[Op, Op]]:
        """Every concurrent pair, in both directions, neither operation skipped."""
        pairs: list[tuple[Op, Op]] = []
        for op in self.ops:
            if op.skip:
                continue
            bound = self.bounds(op)
            for engine in self.engines.values():
                low, high = self.find_mid_seg(engine, op, bound)
                for other in engine.ops[low : high + 1]:
                    if not other.skip and op.concurrent(other):
                        pairs.append((op, other))
        return pairs


def _first_not_before(engine: Engine, op: Op, low: int, high: int) -> int:
    while low < high:
        middle = (low + high) // 2
        if engine.ops[middle].less_than(op):
            low = middle + 1
        else:
            high = middle
    return low


def _last_not_after(engine: Engine, op: Op, low: int, high: int) -> int:
    while low < high:
        middle = (low + high + 1) // 2
        if op.less_than(engine.ops[middle]):
            high = middle - 1
        else:
            low = middle
    return low


def from_basic_block(program: EngineProgram, block: Block) -> Graph:
    """The graph of one block: its instructions, the dependencies inside it, its timelines, the accumulate chain."""
    graph = Graph()
    ops: dict[int, list[Op]] = {}
    rows = program.instructions
    for index in range(block.first, block.last):
        flags = int(rows.flags[index])
        skip = bool(flags & (InstructionFlag.READS_UNINITIALISED | InstructionFlag.EXEMPT_OPCODE))
        ops[index] = [graph.add_op(program.engines[rows.engine[index]], index, skip=skip)]
        if rows.queue[index] >= 0:
            second = graph.add_op("queue " + program.queues[rows.queue[index]], index, skip=skip)
            graph.add_edge(ops[index][0], second)
            ops[index].append(second)
    edges = program.dependencies
    for source, target, distance in zip(
        edges.source.tolist(), edges.target.tolist(), edges.distance.tolist(), strict=True
    ):
        if source in ops and target in ops and distance == 0:
            last, first = ops[source][-1], ops[target][0]
            if last.engine is not first.engine:
                graph.add_edge(last, first)
    for engine in graph.engines.values():
        for op, following in zip(engine.ops, engine.ops[1:], strict=False):
            graph.add_edge(op, following)
    for source, target in accumulate_chain(program, block):
        graph.add_edge(ops[source][0], ops[target][0])
    graph.compute_timestamps()
    return graph


def accumulate_chain(program: EngineProgram, block: Block) -> list[tuple[int, int]]:
    """Neighbouring scatter-accumulates of a block whose first written footprints overlap."""
    chain: list[tuple[int, int]] = []
    previous = -1
    for index in range(block.first, block.last):
        if not int(program.instructions.flags[index]) & InstructionFlag.ACCUMULATES:
            continue
        if previous >= 0:
            one, other = _first_write(program, previous), _first_write(program, index)
            if one is not None and other is not None and accesses_overlap(program, one, other):
                chain.append((previous, index))
        previous = index
    return chain


def _first_write(program: EngineProgram, instruction: int) -> int | None:
    for row in program.accesses_of(instruction):
        if int(program.accesses.flags[row]) & AccessFlag.WRITE:
            return row
    return None
