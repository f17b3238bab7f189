"""Compiles a kernel to TTIR on the host, and says why when that fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from racefree.access import Site
from racefree.errors import RacefreeError, Refusal, Refused
from racefree.triton.targets import ALTERNATIVES, VARIABLE, Target, gpu_target, parse_target
from racefree.ttir.generic import GenericModule, generic_form


@dataclass(frozen=True, slots=True)
class Compiled:
    """The TTIR of one specialisation, or why there is none.

    `any_target` is true for a failure that every other target repeats: Triton itself would raise it in the user's program.
    """

    module: GenericModule | None
    options: Any
    failure: Refusal | None = None
    any_target: bool = False
    error: Exception | None = None


def host_compile(source: Any, target: Target, options: dict[str, Any]) -> Compiled:
    """Lowers a Triton source object (`ASTSource`) to TTIR for a target, without the backend's later stages."""
    parsed: Any = None
    try:
        parsed = _backend(target).parse_options(dict(options, **source.parse_options()))
        return Compiled(_lower(source, target, parsed), parsed)
    except Refused as refused:
        return Compiled(None, parsed, refused.refusal)
    except RacefreeError:
        raise
    except Exception as error:
        return _failed(source, target, options, parsed, error)


def definition_site(function: Any) -> Site:
    """Where a JIT function is defined: the line of its `def`."""
    python_function = getattr(function, "fn", function)
    code = python_function.__code__
    line: int = getattr(function, "starting_line_number", code.co_firstlineno)
    for offset, text in enumerate(getattr(function, "raw_src", ())):
        if text.lstrip().startswith("def "):
            line += offset
            break
    return Site(code.co_filename, line, 0, python_function.__name__)


def _backend(target: Target) -> Any:
    from triton.compiler import make_backend

    return make_backend(gpu_target(target))


def _lower(source: Any, target: Target, options: Any) -> GenericModule:
    from triton._C.libtriton import ir

    backend = _backend(target)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    if source.ext != "ttir" or "ttir" not in stages:
        raise Refused("no-ttir", f"kernels that compile from {source.ext} (Gluon) have no TTIR", definition_site(source.fn))
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    generate = backend.get_codegen_implementation(options)
    module = source.make_ir(gpu_target(target), options, generate, backend.get_module_map(), context)
    module.context = context
    return generic_form(stages["ttir"](module, {}))


def _failed(source: Any, target: Target, options: dict[str, Any], parsed: Any, error: Exception) -> Compiled:
    site = definition_site(source.fn)
    said = _one_line(error)
    if _is_environment(error):
        reason = f"the host compile could not run: {said}"
        return Compiled(None, parsed, Refusal("host-compile-unavailable", reason, site), error=error)
    other = _target_that_compiles(source, target, options)
    if other is None:
        reason = f"the kernel does not compile for {target} or any other target: {said}"
        return Compiled(None, parsed, Refusal("compile-failed", reason, site), any_target=True, error=error)
    reason = f"the kernel does not compile for {target}: {said}; it does for {other}: try --target {other} or {VARIABLE}={other}"
    return Compiled(None, parsed, Refusal("compile-failed", reason, site), error=error)


def _is_environment(error: Exception) -> bool:
    """True for an error of the installation (missing libraries or files); the front end wraps errors of the kernel itself."""
    from triton.compiler.errors import CompilationError

    return not isinstance(error, CompilationError) and isinstance(error, (ImportError, OSError, AttributeError))


def _target_that_compiles(source: Any, target: Target, options: dict[str, Any]) -> Target | None:
    # Options are those of the failing target's backend: what another backend does not know or derives from the architecture goes.
    general = {k: v for k, v in options.items() if k in ("num_warps", "num_stages", "num_ctas", "debug")}
    for name in ALTERNATIVES:
        other = parse_target(name)
        if other == target:
            continue
        try:
            _lower(source, other, _backend(other).parse_options(general))
        except Exception:  # the question is only whether it compiles
            continue
        return other
    return None


def _one_line(error: Exception) -> str:
    """The gist of an error: for a front end error the line it points at and its innermost cause."""
    innermost: BaseException = error
    while innermost.__cause__ is not None:
        innermost = innermost.__cause__
    lines = [line.strip() for line in str(innermost).splitlines() if line.strip()]
    text = f"{type(innermost).__name__}: {lines[-1] if lines else ''}"
    line = getattr(getattr(error, "node", None), "lineno", None)
    return text if line is None else f"{text} (line {line} of the kernel)"
