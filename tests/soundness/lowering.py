"""From a JIT function and its arguments to what the rungs read, without the launch capture: a second way in, kept small."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource, make_backend

from racefree.graph.launch import Argument, LaunchFacts, Scalar, Storage, Tensor
from racefree.graph.program import Program
from racefree.ttir.generic import GenericModule, generic_form
from racefree.ttir.read import read_program

_POINTERS = {
    torch.int8: "*i8",
    torch.int16: "*i16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.uint8: "*u8",
    torch.uint16: "*u16",
    torch.uint32: "*u32",
    torch.bool: "*i1",
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
}

TARGET = GPUTarget("cuda", 80, 32)


class CompileFailed(Exception):
    """Triton rejected the kernel."""


def _signature(
    kernel: Any, arguments: Mapping[str, Any]
) -> tuple[dict[str, str], dict[tuple[int], Any], dict[Any, Any]]:
    signature: dict[str, str] = {}
    constants: dict[tuple[int], Any] = {}
    attributes: dict[Any, Any] = {}
    for place, parameter in enumerate(kernel.params):
        value = arguments[parameter.name]
        if parameter.is_constexpr or (isinstance(value, int) and not isinstance(value, bool) and value == 1):
            signature[parameter.name] = "constexpr"
            constants[(place,)] = value
        elif isinstance(value, torch.Tensor):
            signature[parameter.name] = _POINTERS[value.dtype]
            if value.data_ptr() % 16 == 0:
                attributes[(place,)] = [["tt.divisibility", 16]]
        elif isinstance(value, bool):
            signature[parameter.name] = "u1"
        elif isinstance(value, float):
            signature[parameter.name] = "fp32"
        else:
            signature[parameter.name] = "i32" if -(2**31) <= value < 2**31 else "i64"
            if value % 16 == 0:
                attributes[(place,)] = [["tt.divisibility", 16]]
    return signature, constants, attributes


def lower(kernel: Any, arguments: Mapping[str, Any], *, num_warps: int = 4) -> GenericModule:
    """The TTIR of one specialisation, in generic form. Raises `CompileFailed`."""
    signature, constants, attributes = _signature(kernel, arguments)
    source = ASTSource(kernel, signature, constants, attributes)
    backend = make_backend(TARGET)
    options = backend.parse_options({"num_warps": num_warps, **source.parse_options()})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    made = backend.get_codegen_implementation(options), backend.get_module_map()
    try:
        module = source.make_ir(TARGET, options, *made, context)
        module.context = context
        return generic_form(stages["ttir"](module, {}))
    except Exception as error:
        raise CompileFailed(str(error)) from error


def _argument(value: Any, storages: dict[tuple[int, int], Storage]) -> Argument:
    if not isinstance(value, torch.Tensor):
        return Scalar(value)
    whole = value.untyped_storage()
    key = (whole.data_ptr(), whole.nbytes())
    if key not in storages:
        integral = not (value.dtype.is_floating_point or value.dtype.is_complex)
        contents = torch.empty(0, dtype=torch.uint8).set_(whole).numpy().copy() if integral else None
        storages[key] = Storage(*key, contents, "" if integral else f"float dtype {value.dtype}")
    name = str(value.dtype).removeprefix("torch.")
    shape, strides = tuple(value.shape), tuple(value.stride())
    return Tensor(value.data_ptr(), value.element_size(), name, shape, strides, storages[key])


def facts_of(kernel: Any, arguments: Mapping[str, Any], grid: tuple[int, ...], *, num_warps: int = 4) -> LaunchFacts:
    """The launch as the rungs see it; contents of integer tensors are copied."""
    x, y, z = (*grid, 1, 1)[:3]
    storages: dict[tuple[int, int], Storage] = {}
    constant = {p.name for p in kernel.params if p.is_constexpr}
    listed = {name: _argument(v, storages) for name, v in arguments.items() if name not in constant}
    constants = {name: arguments[name] for name in constant}
    return LaunchFacts(
        kernel.__name__,
        (x, y, z),
        listed,
        num_warps=num_warps,
        target="cuda:80",
        triton_version="3.8.0",
        constants=constants,
    )


def read(
    kernel: Any, arguments: Mapping[str, Any], grid: tuple[int, ...], *, num_warps: int = 4
) -> tuple[Program, LaunchFacts]:
    """The program and the facts of one launch. The reader must name the parameters as the signature does."""
    program = read_program(lower(kernel, arguments, num_warps=num_warps))
    signature, _, _ = _signature(kernel, arguments)
    names = [name for name, kind in signature.items() if kind != "constexpr"]
    assert [p.name for p in program.parameters] == names
    return program, facts_of(kernel, arguments, grid, num_warps=num_warps)
