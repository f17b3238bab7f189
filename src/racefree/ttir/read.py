"""Reads a module in generic form into the access graph: the one entry point of this folder."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from racefree.errors import Refused
from racefree.graph.program import Parameter, Program
from racefree.ttir import calls, control, descriptors, memory, pure
from racefree.ttir.generic import GenericModule
from racefree.ttir.parse import parse
from racefree.ttir.reader import Bound, Descriptor, Handler, Reader
from racefree.ttir.tree import Attribute, BlockArgument, Operation

HANDLERS: Mapping[str, Handler] = {
    **pure.HANDLERS,
    **memory.HANDLERS,
    **descriptors.HANDLERS,
    **control.HANDLERS,
    **calls.HANDLERS,
}


def read_program(module: GenericModule) -> Program:
    """The kernel of a module, with the functions it calls copied in.

    Raises `Refused`: `parse` (the text, or Triton's count of it, does not add up), `unknown-op` (an operation that could
    touch memory, order or an address in a way not modelled), `recursion`, `unstructured-loop`.
    """
    functions = _functions(parse(module))
    kernel = _kernel(functions)
    name = str(kernel.attributes["sym_name"])
    reader = Reader(functions, HANDLERS)
    with reader.entering(name, None, kernel.location):
        entry = kernel.regions[0][0].arguments
        bounds = tuple(reader.fresh_of(argument.type) for argument in entry)
        calls.read_function(reader, kernel, bounds)
        parameters = tuple(_parameters(kernel, entry, bounds))
        return Program(name, parameters, tuple(reader.body), reader.site(kernel.location))


def _functions(top: Operation) -> dict[str, Operation]:
    functions: dict[str, Operation] = {}
    for region in top.regions:
        for block in region:
            for op in block.operations:
                name = op.attributes.get("sym_name")
                if op.name != "tt.func" or not isinstance(name, str) or len(op.regions) != 1:
                    raise Refused("unknown-op", f"{op.name} at the top of the module is not modelled")
                functions[name] = op
    return functions


def _kernel(functions: Mapping[str, Operation]) -> Operation:
    public = [op for op in functions.values() if op.attributes.get("sym_visibility", "public") == "public"]
    if len(public) != 1 or not public[0].regions[0]:
        raise Refused("parse", f"a module must hold one public function, this one holds {len(public)}")
    return public[0]


_PART = re.compile(r"(.+)\.(shape|stride)\.(\d+)|(.+)\.(padding|roundF32ToTF32)")


def _parameters(
    kernel: Operation, arguments: tuple[BlockArgument, ...], bounds: tuple[Bound, ...]
) -> Iterator[Parameter]:
    """A descriptor stands for its parts, and Triton passes extents and strides once more as parameters of their own."""
    details = kernel.attributes.get("arg_attrs")
    names = [argument.location.name or argument.name.removeprefix("%") for argument in arguments]
    for position, (name, bound) in enumerate(zip(names, bounds, strict=True)):
        if isinstance(bound, Descriptor):
            yield Parameter(name, bound.base)
            for axis, extent in enumerate(bound.extents):
                yield Parameter(name, extent, part=f"shape{axis}")
            for axis, stride in enumerate(bound.strides):
                yield Parameter(name, stride, part=f"stride{axis}")
            continue
        owner, part = _owner(name, names[:position])
        yield Parameter(owner, bound, _divisibility(details, position), part)


def _owner(name: str, before: Sequence[str]) -> tuple[str, str]:
    """The descriptor a parameter is a part of, and which part; a parameter on its own is its own owner."""
    match = _PART.fullmatch(name)
    if match is None or (match[1] or match[4]) not in before:
        return name, ""
    return (match[1], match[2] + match[3]) if match[1] else (match[4], match[5])


def _divisibility(details: Attribute | None, position: int) -> int:
    entry = details[position] if isinstance(details, tuple) and position < len(details) else {}
    known = entry.get("tt.divisibility", 1) if isinstance(entry, Mapping) else 1
    return known if isinstance(known, int) else 1
