"""Ways to get a program: from hand-written generic text (no Triton), or from a kernel compiled on the host."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from racefree.graph.program import Program
from racefree.graph.show import show
from racefree.ttir.generic import GenericModule, generic_form
from racefree.ttir.read import read_program


def module_text(parameters: str, body: str, *, more: str = "") -> str:
    """A module with one kernel `k`, in generic form. `parameters` is a block argument list; `body` lacks the return."""
    return f"""
"builtin.module"() ({{
  "tt.func"() <{{function_type = () -> (), sym_name = "k", sym_visibility = "public"}}> ({{
  ^bb0({parameters}):
{body}
    "tt.return"() : () -> ()
  }}) : () -> ()
{more}
}}) : () -> ()
"""


@pytest.fixture
def read() -> Callable[..., Program]:
    """Reads a kernel given as the parameters and the body of its function, in generic form."""

    def build(parameters: str, body: str, *, more: str = "") -> Program:
        return read_program(GenericModule(module_text(parameters, body, more=more), census=None))

    return build


@pytest.fixture
def shown(read: Callable[..., Program]) -> Callable[..., list[str]]:
    """The statements of a kernel as text, without its header and parameters."""

    def build(parameters: str, body: str, *, more: str = "") -> list[str]:
        lines = show(read(parameters, body, more=more)).splitlines()
        return [line[2:] for line in lines if not line.startswith("kernel") and " = parameter " not in line]

    return build


@pytest.fixture
def lower() -> Callable[..., Any]:
    """Compiles a `@triton.jit` function to a TTIR module on the host, for an architecture of no device here."""
    triton = pytest.importorskip("triton")
    from triton._C.libtriton import ir
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource
    from triton.compiler.compiler import make_backend

    def build(kernel: Any, signature: dict[str, Any], *, arch: int = 80, **constants: Any) -> Any:
        assert isinstance(kernel, triton.runtime.jit.JITFunction)
        target = GPUTarget("cuda", arch, 32)
        backend = make_backend(target)
        names = kernel.arg_names
        types = {name: signature.get(name, "constexpr") for name in names}
        source = ASTSource(kernel, types, {(names.index(name),): value for name, value in constants.items()}, {})
        context = ir.context()
        ir.load_dialects(context)
        backend.load_dialects(context)
        options = backend.parse_options({})
        codegen, modules = backend.get_codegen_implementation(options), backend.get_module_map()
        module = source.make_ir(target, options, codegen, modules, context)
        module.context = context
        stages: dict[str, Any] = {}
        backend.add_stages(stages, options, source.language)
        module = stages["ttir"](module, {})
        module.context = context
        return module

    return build


@pytest.fixture
def compiled(lower: Callable[..., Any]) -> Callable[..., Program]:
    """The program of a `@triton.jit` function."""

    def build(kernel: Any, signature: dict[str, Any], *, arch: int = 80, **constants: Any) -> Program:
        return read_program(generic_form(lower(kernel, signature, arch=arch, **constants)))

    return build
