"""Functions: their blocks as guarded statements, and calls read as copies of the callee's body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from racefree.access import Site
from racefree.errors import Refused
from racefree.graph.program import Guard, Statement, Value
from racefree.ttir.blocks import Edge, Graph, graph_of
from racefree.ttir.reader import I1, Bound, Descriptor, Handler, Reader
from racefree.ttir.tree import Block, Operation, Region, Symbol


def read_function(reader: Reader, function: Operation, arguments: Sequence[Bound]) -> tuple[Bound, ...]:
    """Writes the body of a function and gives what it returns. Its names must be in a scope of their own."""
    region = function.regions[0]
    if not region:
        raise reader.unknown(function, f"the body of {function.attributes.get('sym_name')} is not in the module")
    for argument, bound in zip(region[0].arguments, arguments, strict=True):
        reader.bind(argument.name, bound)
    flow = _Flow(reader, region, graph_of(region, reader))
    for label in flow.graph.order:
        flow.read_block(label)
    return flow.returned()


@dataclass(slots=True)
class _Flow:
    """Blocks in an order in which each follows its predecessors; `reach` is the condition a block runs under.

    None is a block that always runs. A condition is false as soon as the condition of a block before it is, whatever that
    block would have computed, because every one is `and(reach, branch)` of a predecessor.
    """

    reader: Reader
    region: Region
    graph: Graph
    reach: dict[str, Value | None] = field(default_factory=dict)
    returns: list[tuple[Value | None, tuple[Bound, ...], Site]] = field(default_factory=list)
    taken: dict[tuple[str, bool | None], Value | None] = field(default_factory=dict)

    def read_block(self, label: str) -> None:
        block = self.graph.blocks[label]
        edges = self.graph.predecessors[label]
        if _returns_nothing(block):
            # Whether a block that only returns is reached matters to nobody, so no condition is written for it.
            self.returns.append((None, (), self.reader.site(block.operations[0].location)))
            return
        site = (
            self.reader.site(edges[0].terminator.location) if edges else self.reader.site(block.operations[0].location)
        )
        self.reach[label] = self._reach(label, edges, site)
        if edges:
            self._bind_arguments(label, edges, site)
        guard = self.reach[label]
        body: list[Statement] = self.reader.body if guard is None else []
        with self.reader.into(body):
            for op in block.operations[:-1]:
                self.reader.read(op)
        if guard is not None and body:
            self.reader.body.append(Guard(guard, tuple(body), site))
        self._leave(block.operations[-1], guard)

    def _leave(self, last: Operation, guard: Value | None) -> None:
        site = self.reader.site(last.location)
        match last.name:
            case "tt.return":
                self.returns.append((guard, tuple(self.reader.look(name) for name in last.operands), site))
            case "ub.unreachable" | "cf.br" | "cf.cond_br":
                pass
            case _:
                raise self.reader.unknown(last)

    def _reach(self, label: str, edges: Sequence[Edge], site: Site) -> Value | None:
        dominator = self.graph.dominator[label]
        if dominator is None:
            return None
        if label in self.graph.always_after[dominator]:
            return self.reach[dominator]
        reach: Value | None = None
        for edge in edges:
            condition = self._taken(edge)
            if condition is None:
                return None
            reach = condition if reach is None else self._logic("arith.ori", reach, condition, site)
        return reach

    def _taken(self, edge: Edge) -> Value | None:
        key = edge.source, edge.when
        if key not in self.taken:
            self.taken[key] = self._condition(edge)
        return self.taken[key]

    def _condition(self, edge: Edge) -> Value | None:
        reach = self.reach[edge.source]
        if edge.when is None:
            return reach
        site = self.reader.site(edge.terminator.location)
        branch = self.reader.value(edge.terminator.operands[0])
        if not edge.when:
            branch = self._logic("arith.xori", branch, self.reader.constant(1, I1, site), site)
        return branch if reach is None else self._logic("arith.andi", reach, branch, site)

    def _logic(self, name: str, left: Value, right: Value, site: Site) -> Value:
        return self.reader.op(name, (left, right), I1, (), site)

    def _bind_arguments(self, label: str, edges: Sequence[Edge], site: Site) -> None:
        for position, argument in enumerate(self.graph.blocks[label].arguments):
            ways = [(self._taken(edge), self.reader.look(edge.arguments[position])) for edge in edges]
            self.reader.bind(argument.name, self._merge(ways, site))

    def _merge(self, ways: Sequence[tuple[Value | None, Bound]], site: Site) -> Bound:
        """The value of the way taken; the last way needs no test, because a way is taken where the result is used."""
        *tested, (_, merged) = ways
        for condition, bound in reversed(tested):
            merged = bound if condition is None else self._select(condition, bound, merged, site)
        return merged

    def _select(self, condition: Value, yes: Bound, no: Bound, site: Site) -> Bound:
        if yes == no:
            return yes
        match yes, no:
            case Value(), Value():
                return self.reader.op("arith.select", (condition, yes, no), yes.element, yes.shape, site)
            case Descriptor(), Descriptor() if yes.block == no.block:
                base, *rest = (
                    self.reader.op("arith.select", (condition, one, other), one.element, one.shape, site)
                    for one, other in zip(yes.parts, no.parts, strict=True)
                )
                rank = len(yes.extents)
                return Descriptor(base, tuple(rest[:rank]), tuple(rest[rank:]), yes.block)
            case _:
                raise Refused("unknown-op", "a branch merges values of different kinds", site)

    def returned(self) -> tuple[Bound, ...]:
        if not self.returns:
            raise Refused("unknown-op", "a function that never returns is not modelled")
        count = len(self.returns[0][1])
        site = self.returns[0][2]
        return tuple(
            self._merge([(reach, values[position]) for reach, values, _ in self.returns], site)
            for position in range(count)
        )


def _returns_nothing(block: Block) -> bool:
    return len(block.operations) == 1 and block.operations[0].name == "tt.return" and not block.operations[0].operands


def _call(reader: Reader, op: Operation) -> None:
    callee = op.attributes.get("callee")
    function = reader.functions.get(callee.name) if isinstance(callee, Symbol) else None
    if function is None or not isinstance(callee, Symbol):
        raise reader.unknown(op, "a call to a function outside the module is not modelled")
    arguments = tuple(reader.look(name) for name in op.operands)
    with reader.entering(callee.name, reader.site(op.location), function.location):
        returned = read_function(reader, function, arguments)
    for name, bound in zip(op.results, returned, strict=True):
        reader.bind(name, bound)


HANDLERS: dict[str, Handler] = {"tt.call": _call}
