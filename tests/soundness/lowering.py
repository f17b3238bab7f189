"""From a JIT function and its arguments to what the rungs read, without the launch capture: a second way in, kept small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from triton.compiler import ASTSource

from racefree.graph.launch import Argument, LaunchFacts, Scalar, Storage, Tensor
from racefree.graph.program import Program
from racefree.triton.hostcompile import host_compile
from racefree.triton.targets import parse_target
from racefree.ttir.generic import GenericModule
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

TARGET = parse_target("cuda:80")


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
    compiled = host_compile(ASTSource(kernel, signature, constants, attributes), TARGET, {"num_warps": num_warps})
    if compiled.module is None:
        raise CompileFailed(str(compiled.failure))
    return compiled.module


def _argument(value: Any, storages: dict[tuple[int, int], Storage]) -> Argument:
    if not isinstance(value, torch.Tensor):
        return Scalar(value)
    whole = value.untyped_storage()
    key = (whole.data_ptr(), whole.nbytes())
    if key not in storages:
        integral = not (value.dtype.is_floating_point or value.dtype.is_complex)
        contents = np.frombuffer(bytes(whole), dtype=np.uint8).copy() if integral else None
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
        target=str(TARGET),
        triton_version="3.8.0",
        constants=constants,
    )


def read(
    kernel: Any, arguments: Mapping[str, Any], grid: tuple[int, ...], *, num_warps: int = 4
) -> tuple[Program, LaunchFacts]:
    """The program and the facts of one launch. Parameters are bound by position."""
    program = read_program(lower(kernel, arguments, num_warps=num_warps))
    signature, _, _ = _signature(kernel, arguments)
    names = [name for name, kind in signature.items() if kind != "constexpr"]
    parameters = tuple(replace(p, name=n) for p, n in zip(program.parameters, names, strict=True))
    return replace(program, parameters=parameters), facts_of(kernel, arguments, grid, num_warps=num_warps)
