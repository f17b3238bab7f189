"""Reads a module in generic form into the access graph: the one entry point of this folder."""

from __future__ import annotations

from collections.abc import Mapping

from racefree.errors import Refused
from racefree.graph.program import Program
from racefree.ttir import calls, control, descriptors, memory, pure
from racefree.ttir.generic import GenericModule
from racefree.ttir.parameters import read_parameters
from racefree.ttir.parse import parse
from racefree.ttir.reader import Handler, Reader
from racefree.ttir.tree import Operation

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
    touch memory, order or an address in a way not modelled), `recursion`, `unstructured-loop`, `tuple-argument`.
    """
    functions = _functions(parse(module))
    kernel = _kernel(functions)
    name = str(kernel.attributes["sym_name"])
    # Triton 3.7 counts columns from 0, and without the indentation of the function.
    reader = Reader(functions, HANDLERS, has_columns=not module.triton_version.startswith("3.7."))
    with reader.entering(name, None, kernel.location):
        entry = kernel.regions[0][0].arguments
        bounds = tuple(reader.fresh_of(argument.type) for argument in entry)
        calls.read_function(reader, kernel, bounds)
        return Program(name, read_parameters(kernel, bounds), tuple(reader.body), reader.site(kernel.location))


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
