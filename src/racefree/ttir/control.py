"""Handlers of structured control flow: loops, branches, switches."""

from __future__ import annotations

from collections.abc import Sequence

from racefree.graph.program import For, If, Int, Statement, Value, While
from racefree.ttir.reader import I1, Bound, Descriptor, Handler, Reader, flag, flatten, integers
from racefree.ttir.tree import Block, Operation, Region


def _only_block(reader: Reader, op: Operation, region: Region) -> Block:
    if len(region) != 1 or not region[0].operations:
        raise reader.unknown(op, f"{op.name} with unstructured control flow inside is not modelled")
    return region[0]


def _arguments(reader: Reader, block: Block) -> tuple[Bound, ...]:
    bounds = tuple(reader.fresh_of(argument.type) for argument in block.arguments)
    for argument, bound in zip(block.arguments, bounds, strict=True):
        reader.bind(argument.name, bound)
    return bounds


def _read_until(reader: Reader, block: Block, end: str) -> Operation:
    """Reads all operations of a block but the last, which must be the terminator `end`."""
    *inner, last = block.operations
    for op in inner:
        reader.read(op)
    if last.name != end:
        raise reader.unknown(last, f"{last.name} ends a block where {end} is expected")
    return last


def _looked(reader: Reader, names: Sequence[str]) -> tuple[Bound, ...]:
    return tuple(reader.look(name) for name in names)


def _bind_results(reader: Reader, op: Operation) -> tuple[Value, ...]:
    bounds = tuple(reader.fresh_of(text) for text in op.result_types)
    for name, bound in zip(op.results, bounds, strict=True):
        reader.bind(name, bound)
    return flatten(bounds)


def _for(reader: Reader, op: Operation) -> None:
    lower, upper, step = (reader.value(name) for name in op.operands[:3])
    inits = flatten(_looked(reader, op.operands[3:]))
    with reader.scope() as body:
        block = _only_block(reader, op, op.regions[0])
        induction, *carried = _arguments(reader, block)
        end = _read_until(reader, block, "scf.yield")
        yields = flatten(_looked(reader, end.operands))
    if isinstance(induction, Descriptor):
        raise reader.unknown(op)
    results = _bind_results(reader, op)
    site = reader.site(op.location)
    unsigned = flag(op, "unsignedCmp")
    loop = For(induction, lower, upper, step, flatten(carried), inits, tuple(body), yields, results, unsigned, site)
    _require_parallel(reader, op, loop.carried, inits, yields, results)
    reader.body.append(loop)


def _require_parallel(reader: Reader, op: Operation, *lists: tuple[Value, ...]) -> None:
    kinds = {tuple((value.element, value.shape) for value in values) for values in lists}
    if len(kinds) > 1:
        raise reader.unknown(op, f"{op.name} passes on values of other types than it takes")


def _branch(reader: Reader, op: Operation, region: Region) -> tuple[tuple[Statement, ...], tuple[Value, ...]]:
    """Statements and yielded values of one arm; an arm that is not there does nothing."""
    if not region or not region[0].operations:
        return (), ()
    with reader.scope() as body:
        end = _read_until(reader, _only_block(reader, op, region), "scf.yield")
        return tuple(body), flatten(_looked(reader, end.operands))


def _if(reader: Reader, op: Operation) -> None:
    condition = reader.value(op.operands[0])
    then_body, then_yields = _branch(reader, op, op.regions[0])
    else_body, else_yields = _branch(reader, op, op.regions[1])
    results = _bind_results(reader, op)
    _require_parallel(reader, op, then_yields, else_yields, results)
    site = reader.site(op.location)
    reader.body.append(If(condition, then_body, then_yields, else_body, else_yields, results, site))


def _while(reader: Reader, op: Operation) -> None:
    inits = flatten(_looked(reader, op.operands))
    before_region, after_region = op.regions
    with reader.scope() as before:
        block = _only_block(reader, op, before_region)
        before_args = flatten(_arguments(reader, block))
        test = _read_until(reader, block, "scf.condition")
        condition = reader.value(test.operands[0])
        forwarded = flatten(_looked(reader, test.operands[1:]))
    with reader.scope() as after:
        block = _only_block(reader, op, after_region)
        after_args = flatten(_arguments(reader, block))
        end = _read_until(reader, block, "scf.yield")
        after_yields = flatten(_looked(reader, end.operands))
    results = _bind_results(reader, op)
    _require_parallel(reader, op, inits, before_args, after_yields)
    _require_parallel(reader, op, forwarded, after_args, results)
    reader.body.append(
        While(
            before_args,
            inits,
            tuple(before),
            condition,
            forwarded,
            after_args,
            tuple(after),
            after_yields,
            results,
            reader.site(op.location),
        )
    )


def _index_switch(reader: Reader, op: Operation) -> None:
    """A chain of branches, one for each case, the default (the first region) innermost."""
    selector = reader.value(op.operands[0])
    if not isinstance(selector.element, Int):
        raise reader.unknown(op)
    cases = integers(op, "cases", reader)
    site = reader.site(op.location)
    equals: list[Value] = []
    for case in cases:
        number = reader.constant(case, selector.element, site)
        equals.append(reader.op("arith.cmpi", (selector, number), I1, (), site, predicate="eq"))
    default, *arms = (_branch(reader, op, region) for region in op.regions)
    else_body, else_yields = default
    results = _bind_results(reader, op)
    for position in reversed(range(len(cases))):
        then_body, then_yields = arms[position]
        _require_parallel(reader, op, then_yields, else_yields, results)
        outs = results if position == 0 else tuple(reader.fresh(value.element, value.shape) for value in results)
        chain = If(equals[position], then_body, then_yields, else_body, else_yields, outs, site)
        else_body, else_yields = (chain,), outs
    if not cases:
        raise reader.unknown(op, "a switch without cases is not modelled")
    reader.body.extend(else_body)


HANDLERS: dict[str, Handler] = {
    "scf.for": _for,
    "scf.if": _if,
    "scf.while": _while,
    "scf.index_switch": _index_switch,
}
