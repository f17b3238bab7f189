"""The control-flow graph of a function: which block runs before which, and which always follows which."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from racefree.errors import Refused
from racefree.ttir.reader import Reader, integers
from racefree.ttir.tree import Block, Operation, Region


@dataclass(frozen=True, slots=True)
class Edge:
    """A way from block `source`; `when` is the value its condition must have, None where it always goes."""

    source: str
    target: str
    when: bool | None
    arguments: tuple[str, ...]
    terminator: Operation


@dataclass(frozen=True, slots=True)
class Graph:
    """The reachable blocks of an acyclic function.

    `order` has each block after its predecessors. `dominator` is the nearest block every way to a block passes through
    (None for the entry). `always_after[b]` holds the blocks that every way from `b` to a return passes through.
    """

    blocks: Mapping[str, Block]
    order: tuple[str, ...]
    predecessors: Mapping[str, tuple[Edge, ...]]
    dominator: Mapping[str, str | None]
    always_after: Mapping[str, frozenset[str]]


def graph_of(region: Region, reader: Reader) -> Graph:
    """Raises `Refused("unstructured-loop")` when a block can follow itself."""
    blocks = {block.label or "^entry": block for block in region}
    edges = {label: _edges(label, block, reader) for label, block in blocks.items()}
    order = _order(next(iter(blocks)), edges, reader)
    predecessors: dict[str, list[Edge]] = {label: [] for label in order}
    for label in order:
        for edge in edges[label]:
            predecessors[edge.target].append(edge)
    return Graph(
        blocks,
        order,
        {label: tuple(found) for label, found in predecessors.items()},
        _dominators(order, predecessors),
        _always_after(order, edges),
    )


def _edges(label: str, block: Block, reader: Reader) -> tuple[Edge, ...]:
    if not block.operations:
        raise Refused("parse", f"block {label} is empty")
    last = block.operations[-1]
    match last.name, last.successors:
        case ("cf.br", (target,)):
            return (Edge(label, target, None, last.operands, last),)
        case ("cf.cond_br", (yes, no)):
            one, first, second = integers(last, "operandSegmentSizes", reader)
            split = one + first
            if one != 1 or split + second != len(last.operands):
                raise reader.unknown(last, "cf.cond_br has operands that do not match its segments")
            if yes == no and last.operands[1:split] == last.operands[split:]:
                return (Edge(label, yes, None, last.operands[1:split], last),)
            return (
                Edge(label, yes, True, last.operands[1:split], last),
                Edge(label, no, False, last.operands[split:], last),
            )
        case (_, ()):
            return ()
        case _:
            raise reader.unknown(last)


def _order(entry: str, edges: Mapping[str, Sequence[Edge]], reader: Reader) -> tuple[str, ...]:
    finished: list[str] = []
    open_labels: set[str] = set()
    stack: list[tuple[str, int]] = [(entry, 0)]
    seen = {entry}
    open_labels.add(entry)
    while stack:
        label, position = stack.pop()
        if position == len(edges[label]):
            open_labels.discard(label)
            finished.append(label)
            continue
        stack.append((label, position + 1))
        edge = edges[label][position]
        if edge.target not in edges:
            raise Refused("parse", f"{edge.target} names no block")
        if edge.target in open_labels:
            site = reader.site(edge.terminator.location)
            raise Refused("unstructured-loop", "a loop built from branches is not modelled; use `for` or `while`", site)
        if edge.target not in seen:
            seen.add(edge.target)
            open_labels.add(edge.target)
            stack.append((edge.target, 0))
    return tuple(reversed(finished))


def _dominators(order: Sequence[str], predecessors: Mapping[str, Sequence[Edge]]) -> dict[str, str | None]:
    """In an acyclic graph one pass in order is enough."""
    depth = {order[0]: 0}
    dominator: dict[str, str | None] = {order[0]: None}
    for label in order[1:]:
        nearest, *others = (edge.source for edge in predecessors[label])
        for other in others:
            while nearest != other:
                if depth[nearest] < depth[other]:
                    nearest, other = other, nearest
                up = dominator[nearest]
                if up is None:
                    break
                nearest = up
        dominator[label] = nearest
        depth[label] = depth[nearest] + 1
    return dominator


def _always_after(order: Sequence[str], edges: Mapping[str, Sequence[Edge]]) -> dict[str, frozenset[str]]:
    after: dict[str, frozenset[str]] = {}
    for label in reversed(order):
        ways = [after[edge.target] | {edge.target} for edge in edges[label]]
        after[label] = frozenset.intersection(*ways) if ways else frozenset()
    return after
