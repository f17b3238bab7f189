"""Handlers of pure operations: integer arithmetic, tiles, pointers, reductions."""

from __future__ import annotations

import re

from racefree.graph.program import Assume, Attribute, Combiner, Data, Int, Op, Ptr, Value
from racefree.ttir import ops
from racefree.ttir.reader import Handler, Reader, flag, integer, integers
from racefree.ttir.tree import Attribute as Parsed
from racefree.ttir.tree import Dense, Operation, Raw, Region
from racefree.ttir.types import tile


def _emit(reader: Reader, op: Operation, **attributes: Attribute) -> None:
    operands = reader.operands(op)
    reader.body.append(Op(op.name, reader.results(op), operands, attributes, reader.site(op.location)))


def _movement(reader: Reader, op: Operation) -> None:
    _emit(reader, op)


def _arithmetic(reader: Reader, op: Operation) -> None:
    """Integers are computed; the same operation on anything else makes data."""
    operands = reader.operands(op)
    results = reader.results(op)
    site = reader.site(op.location)
    if all(isinstance(value.element, Int) for value in (*operands, *results)):
        reader.body.append(Op(op.name, results, operands, {}, site))
    else:
        reader.body.append(Data(op.name, results, operands, True, site))


def _lanewise(reader: Reader, op: Operation) -> None:
    reader.data(op, lanewise=True)


def _mixing(reader: Reader, op: Operation) -> None:
    reader.data(op, lanewise=False)


def _silent(reader: Reader, op: Operation) -> None:
    if op.results or op.regions:
        raise reader.unknown(op)


def _print(reader: Reader, op: Operation) -> None:
    # Kept because a value that is printed is used: the result of an atomic then comes with a barrier.
    reader.body.append(Data(op.name, (), reader.operands(op), False, reader.site(op.location)))


def _constant(reader: Reader, op: Operation) -> None:
    (result,) = reader.results(op)
    value = _number(op.attributes.get("value"), result)
    made = reader.constants[result.index] = Op(op.name, (result,), (), {"value": value}, reader.site(op.location))
    reader.body.append(made)


def _number(value: Parsed | None, result: Value) -> Attribute:
    if not isinstance(result.element, Int):
        return None
    match value:
        case int():
            return int(value)
        case Dense(values, splat):
            return values[0] if splat else values
        case Raw(text):
            return _blob(text, result.element.bits)
        case _:
            return None


def _blob(text: str, bits: int) -> tuple[int, ...] | None:
    """Elements of `dense<"0x...">`: whole bytes, little endian, signed."""
    match = re.match(r'dense<"0x([0-9A-Fa-f]*)">', text)
    if match is None or bits % 8:
        return None
    raw, size = bytes.fromhex(match[1]), bits // 8
    return tuple(int.from_bytes(raw[at : at + size], "little", signed=True) for at in range(0, len(raw), size))


def _cmpi(reader: Reader, op: Operation) -> None:
    predicate = integer(op, "predicate", reader)
    if not 0 <= predicate < len(ops.CMPI_PREDICATES):
        raise reader.unknown(op, f"arith.cmpi has the unknown predicate {predicate}")
    _emit(reader, op, predicate=ops.CMPI_PREDICATES[predicate])


def _make_range(reader: Reader, op: Operation) -> None:
    _emit(reader, op, start=integer(op, "start", reader), end=integer(op, "end", reader))


def _axis(reader: Reader, op: Operation) -> None:
    _emit(reader, op, axis=integer(op, "axis", reader))


def _reshape(reader: Reader, op: Operation) -> None:
    _emit(reader, op, allow_reorder=flag(op, "allow_reorder"))


def _trans(reader: Reader, op: Operation) -> None:
    _emit(reader, op, order=integers(op, "order", reader))


def _gather(reader: Reader, op: Operation) -> None:
    if all(isinstance(value.element, Int) for value in reader.operands(op)):
        _axis(reader, op)
    else:
        _mixing(reader, op)


def _addptr(reader: Reader, op: Operation) -> None:
    if not isinstance(reader.value(op.operands[0]).element, Ptr):
        raise reader.unknown(op, f"pointer arithmetic on {op.operand_types[0]} is not modelled")
    _movement(reader, op)


def _bitcast(reader: Reader, op: Operation) -> None:
    """Between pointers the address stays and the step changes; between integers nothing changes; the rest is data."""
    (operand,) = reader.operands(op)
    (result,) = reader.results(op)
    site = reader.site(op.location)
    kinds = (operand.element, result.element)
    if all(isinstance(kind, Ptr) for kind in kinds) or all(isinstance(kind, Int) for kind in kinds):
        reader.body.append(Op("tt.bitcast", (result,), (operand,), {}, site))
    elif any(isinstance(kind, Ptr) for kind in kinds):
        raise reader.unknown(op, f"a cast from {op.operand_types[0]} to {op.result_types[0]} is not modelled")
    else:
        reader.body.append(Data(op.name, (result,), (operand,), True, site))


def _assume(reader: Reader, op: Operation) -> None:
    # What follows the condition are bundles about pointers (alignment, validity), which say nothing about order.
    condition = reader.value(op.operands[0])
    reader.body.append(Assume(condition, reader.site(op.location)))


def _fold(reader: Reader, op: Operation) -> None:
    """A reduction or scan: computed when its combiner works on integers alone, else data."""
    _require_pure(reader, op)
    axis = integer(op, "axis", reader)
    combine = _combined(reader, op)
    if combine is None:
        _mixing(reader, op)
    elif op.name == "tt.scan":
        _emit(reader, op, axis=axis, combine=combine, reverse=flag(op, "reverse"))
    else:
        given = reader.operands(op)
        operands = tuple(_in_order(reader, value) for value in given) if isinstance(combine, str) else given
        folded: dict[str, Attribute] = {"axis": axis, "combine": combine}
        reader.body.append(Op(op.name, reader.results(op), operands, folded, reader.site(op.location)))


def _in_order(reader: Reader, value: Value) -> Value:
    """A one-dimensional tile as it was before a reshape that may reorder its elements, else the tile itself.

    Only for a reduction of all its elements by an operation that is associative and commutative: its result is the same in
    any order. Triton writes a reduction over all axes, of a tile of any shape, as such a reshape and a reduction.
    """
    made = next((s for s in reversed(reader.body) if isinstance(s, Op) and value in s.results), None)
    if made is None or made.name != "tt.reshape" or not made.attributes["allow_reorder"] or len(value.shape) != 1:
        return value
    (source,) = made.operands
    if source.shape == value.shape:
        return source
    return reader.op("tt.reshape", (source,), value.element, value.shape, made.site, allow_reorder=False)


def _combined(reader: Reader, op: Operation) -> str | Combiner | None:
    if len(op.regions) != 1 or not all(isinstance(value.element, Int) for value in reader.operands(op)):
        return None
    named = _combiner(op.regions[0]) if len(op.operands) == 1 else None
    return named or _general(reader, op.regions[0], 2 * len(op.operands))


def _general(reader: Reader, region: Region, arguments: int) -> Combiner | None:
    """The combiner as operations, when it is one block of integer operations; constants made outside come along."""
    if len(region) != 1 or len(region[0].arguments) != arguments:
        return None
    *inner, end = region[0].operations
    with reader.scope() as body:
        values = tuple(reader.fresh(*tile(argument.type)) for argument in region[0].arguments)
        for argument, value in zip(region[0].arguments, values, strict=True):
            reader.bind(argument.name, value)
        for each in inner:
            reader.read(each)
        results = reader.operands(end)
    steps = tuple(statement for statement in body if isinstance(statement, Op))
    whole = len(steps) == len(body) and len(results) * 2 == arguments
    inside = {value.index for value in (*values, *(result for step in steps for result in step.results))}
    used = (*(operand for step in steps for operand in step.operands), *results)
    outside = dict.fromkeys(value.index for value in used if value.index not in inside)
    if not all(index in reader.constants for index in outside):
        return None
    steps = (*(reader.constants[index] for index in outside), *steps)
    made = [value for step in steps for value in (*step.results, *step.operands)]
    if not whole or not all(isinstance(value.element, Int) and not value.shape for value in (*made, *values)):
        return None
    return Combiner(values, steps, results)


def _combiner(region: Region) -> str | None:
    if len(region) != 1 or len(region[0].operations) != 2:
        return None
    step, end = region[0].operations
    arguments = {argument.name for argument in region[0].arguments}
    if len(arguments) != 2 or set(step.operands) != arguments or end.operands != step.results:
        return None
    return ops.COMBINERS.get(step.name)


_ENDS = frozenset({"tt.reduce.return", "tt.scan.return", "tt.map_elementwise.return"})


def _require_pure(reader: Reader, op: Operation) -> None:
    for region in op.regions:
        for block in region:
            for inner in block.operations:
                if inner.name not in ops.PURE | _ENDS or inner.regions:
                    raise reader.unknown(inner, f"{inner.name} inside {op.name} is not modelled")


def _map_elementwise(reader: Reader, op: Operation) -> None:
    _require_pure(reader, op)
    _mixing(reader, op)


def _extern(reader: Reader, op: Operation) -> None:
    if op.attributes.get("pure") is not True:
        symbol = op.attributes.get("symbol")
        raise reader.unknown(op, f"the external function {symbol} may touch memory (is_pure is not set)")
    _lanewise(reader, op)


_HARMLESS = re.compile(
    r"(?:mov|cvt)(?:\.[usb](?:32|64))+ \$0 ?, ?%\w+(?:\.[xyz])?|griddepcontrol\.(?:wait|launch_dependents)"
)
"""Instructions that read a special register, or order one launch after another."""


def _harmless(text: Parsed | None) -> bool:
    """True when an assembly text is nothing but instructions known to touch no memory and to order none."""
    if not isinstance(text, str):
        return False
    lines = (line.partition("//")[0] for line in text.splitlines())
    instructions = [" ".join(part.split()) for line in lines for part in line.split(";") if part.strip()]
    return all(_HARMLESS.fullmatch(instruction) for instruction in instructions)


def _inline_assembly(reader: Reader, op: Operation) -> None:
    if op.attributes.get("pure") is not True and not _harmless(op.attributes.get("asm_string")):
        raise reader.unknown(op, "inline assembly that is not marked pure may touch memory or order it")
    reader.data(op, lanewise=integer(op, "packed_element", reader) == 1)


HANDLERS: dict[str, Handler] = {
    **dict.fromkeys(ops.INTEGER, _arithmetic),
    **dict.fromkeys(ops.MOVEMENT, _movement),
    **dict.fromkeys(ops.LANEWISE_DATA, _lanewise),
    **dict.fromkeys(ops.MIXING_DATA, _mixing),
    **dict.fromkeys(ops.SILENT, _silent),
    "arith.constant": _constant,
    "arith.cmpi": _cmpi,
    "arith.bitcast": _bitcast,
    "tt.bitcast": _bitcast,
    "tt.make_range": _make_range,
    "tt.expand_dims": _axis,
    "tt.get_program_id": _axis,
    "tt.get_num_programs": _axis,
    "tt.reshape": _reshape,
    "tt.trans": _trans,
    "tt.gather": _gather,
    "tt.histogram": _movement,
    "tt.addptr": _addptr,
    "tt.reduce": _fold,
    "tt.scan": _fold,
    "tt.map_elementwise": _map_elementwise,
    "tt.extern_elementwise": _extern,
    "tt.elementwise_inline_asm": _inline_assembly,
    "tt.print": _print,
    "llvm.intr.assume": _assume,
}
