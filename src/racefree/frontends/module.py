"""Decides a bare TTIR module, launched with the grid and the arguments given on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from racefree.access import Site
from racefree.analysis import Analyst
from racefree.errors import InputError, Refused
from racefree.frontends import Found, Request
from racefree.graph.launch import Argument, LaunchFacts, Scalar, Storage, Tensor
from racefree.graph.program import Parameter, Program, Ptr
from racefree.replaying import without_kernel

_SIZES = {
    **dict.fromkeys(("i1", "i8", "u8", "f8", "bool", "int8", "uint8"), 1),
    **dict.fromkeys(("i16", "u16", "f16", "bf16", "fp16", "int16", "uint16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("i32", "u32", "f32", "fp32", "int32", "uint32", "float32"), 4),
    **dict.fromkeys(("i64", "u64", "f64", "fp64", "int64", "uint64", "float64"), 8),
}
_TENSOR = re.compile(r"(?P<dtype>\w+)\[(?P<shape>[\d,\s]*)\](?::(?P<strides>[\d,\s-]+))?")
_USUAL_WARPS = 4
_FIRST_ADDRESS, _ALIGNMENT = 1 << 32, 1 << 12
_HOW = "write --arg NAME=f32[64,128] for a tensor (and :STRIDES when it is not contiguous), --arg NAME=5 for a number"


def check(request: Request, found: Found) -> None:
    """Read the module, bind the arguments, decide. Raises InputError when they do not fit the module."""
    from racefree.triton.launches import CapturedConfig, CapturedLaunch
    from racefree.ttir.generic import generic_form_of_text
    from racefree.ttir.read import read_program

    if request.grid is None:
        raise InputError(f"{request.path}: a TTIR module needs a grid: --grid X[,Y[,Z]]")
    try:
        module = generic_form_of_text(request.path.read_text(encoding="utf-8"), file=str(request.path.absolute()))
        program = read_program(module)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {request.path}: {error}") from error
    except Refused as refused:
        raise InputError(f"{request.path}: {refused}") from refused
    facts = LaunchFacts(
        kernel=program.name,
        grid=request.grid,
        arguments=_bind(program, dict(_pairs(request.given))),
        num_warps=request.num_warps or _USUAL_WARPS,
        target=request.settings.target or "cuda:80",
        triton_version=module.triton_version,
    )
    here = Site(str(request.path.absolute()), 1)
    taken = () if request.num_warps else (f"taken to run with {_USUAL_WARPS} warps; --num-warps says otherwise",)
    captured = CapturedLaunch(program.name, program.site, here, (CapturedConfig(facts, module),), taken)
    analyst = Analyst(request.settings, draws=request.draws)
    found.begin(captured.kernel)
    launch = analyst.decide(captured).launch
    found.add(launch if request.replays is None else without_kernel(launch, "a TTIR module has no kernel to run"))
    found.tracebacks += analyst.tracebacks


def _pairs(given: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for text in given:
        name, equals, value = text.partition("=")
        if not equals:
            raise InputError(f"--arg {text}: {_HOW}")
        yield name.strip(), value.strip()


@dataclass(slots=True)
class _Memory:
    """Hands out addresses for tensors that never meet."""

    free: int = _FIRST_ADDRESS

    def tensor(self, name: str, text: str) -> Tensor | None:
        found = _TENSOR.fullmatch(text)
        if found is None or found["dtype"] not in _SIZES:
            return None
        size = _SIZES[found["dtype"]]
        shape = _numbers(found["shape"])
        strides = _numbers(found["strides"]) if found["strides"] else _contiguous(shape)
        if len(strides) != len(shape) or any(stride < 0 for stride in strides):
            raise InputError(f"--arg {name}={text}: give one stride of 0 or more for each of {len(shape)} dimensions")
        last = sum((extent - 1) * stride for extent, stride in zip(shape, strides, strict=True))
        nbytes = 0 if 0 in shape else (last + 1) * size
        storage = Storage(self.free, nbytes, None, "the command line gives no contents")
        self.free += -(-max(nbytes, 1) // _ALIGNMENT) * _ALIGNMENT
        return Tensor(storage.address, size, found["dtype"], shape, strides, storage)


def _bind(program: Program, given: Mapping[str, str]) -> dict[str, Argument]:
    memory, bound = _Memory(), dict[str, Argument]()
    names = [parameter.name for parameter in program.parameters]
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise InputError(f"the module has no argument {unknown[0]!r}; it has {', '.join(names)}")
    for parameter in program.parameters:
        if parameter.part:
            raise InputError(
                f"argument {parameter.name!r} is a tensor descriptor: save the launch instead of its module"
            )
        if parameter.name not in given:
            raise InputError(f"argument {parameter.name!r} is missing: {_HOW}")
        bound[parameter.name] = _argument(parameter, given[parameter.name], memory)
    return bound


def _argument(parameter: Parameter, text: str, memory: _Memory) -> Argument:
    element = parameter.value.element
    if isinstance(element, Ptr):
        tensor = memory.tensor(parameter.name, text)
        if tensor is None:
            raise InputError(f"argument {parameter.name!r} is a pointer, and {text!r} is no tensor: {_HOW}")
        if tensor.element_bytes != element.pointee_bytes:
            raise InputError(
                f"argument {parameter.name!r} points at elements of {element.pointee_bytes} bytes, not {text!r}"
            )
        return tensor
    try:
        return Scalar(int(text, 0))
    except ValueError:
        pass
    try:
        return Scalar(float(text))
    except ValueError:
        raise InputError(f"argument {parameter.name!r} is a number, and {text!r} is none: {_HOW}") from None


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))
