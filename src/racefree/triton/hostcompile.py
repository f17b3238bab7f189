"""Compiles a kernel to TTIR on the host, and says why when that fails."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from racefree.access import Site
from racefree.errors import RacefreeError, Refusal, Refused
from racefree.forking import Rank, guarded
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


class HostCompiler:
    """Lowers Triton sources to TTIR for a target, without the backend's later stages.

    Autotune configs mostly differ in options that TTIR does not depend on. Which ones it does depend on is not assumed:
    reads of them are watched, and a module is shared only between configs that agree on all options that were read.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._made: dict[str, list[tuple[dict[str, Any], GenericModule]]] = {}
        self._lock = guarded(Rank.COMPILING)

    def compile(self, source: Any, options: dict[str, Any]) -> Compiled:
        """The TTIR of a source (`ASTSource`), or the failure as data. Raises only what is an error of the whole run."""
        parsed: Any = None
        try:
            parsed = _backend(self._target).parse_options(dict(options, **source.parse_options()))
            with self._lock:  # front end and passes of one process share state in the bindings
                return Compiled(self._shared(source, parsed), parsed)
        except Refused as refused:
            return Compiled(None, parsed, refused.refusal)
        except RacefreeError:
            raise
        except Exception as error:
            return _failed(source, self._target, options, parsed, error)

    def refused(self, function: Any, options: dict[str, Any]) -> Refusal | None:
        """Why the target cannot have these options (clusters of blocks before Hopper, say), None where it can.

        Triton would raise it in the user's program, before it compiles anything.
        """
        said = _objection(self._target, options)
        if said is None:
            return None
        others = [name for name in ALTERNATIVES if _objection(parse_target(name), options) is None]
        hint = f"; it can be had for {others[0]}: try --target {others[0]} or {VARIABLE}={others[0]}" if others else ""
        reason = f"the kernel does not compile for {self._target}: {said}{hint}"
        return Refusal("compile-failed", reason, definition_site(function))

    def _shared(self, source: Any, options: Any) -> GenericModule:
        made = self._made.setdefault(source.hash(), [])
        for read, module in made:
            if all(getattr(options, name, None) == value for name, value in read.items()):
                return module
        watched = WatchedOptions(options)
        module = _lower(source, self._target, watched)
        made.append((watched.read, module))
        return module


class WatchedOptions:
    """Backend options that note which of them were read, and with what value. Reading `__dict__` reads all of them."""

    __slots__ = ("_options", "read")

    def __init__(self, options: Any) -> None:
        self._options = options
        self.read: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._options, name)
        self.read[name] = dict(value) if name == "__dict__" else value
        return value


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


def jit_function(kernel: Any) -> Any:
    """The JIT function under autotuners and heuristics, None when there is none."""
    from triton.runtime.jit import JITFunction

    while not isinstance(kernel, JITFunction):
        kernel = getattr(kernel, "fn", None)
        if kernel is None:
            return None
    return kernel


def _backend(target: Target) -> Any:
    from triton.compiler import make_backend

    return make_backend(gpu_target(target))


def _objection(target: Target, options: dict[str, Any]) -> str | None:
    try:
        _backend(target).parse_options(dict(options))
    except ValueError as error:
        return _one_line(error)
    return None


def _lower(source: Any, target: Target, options: Any) -> GenericModule:
    from triton._C.libtriton import ir

    backend = _backend(target)
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, source.language)
    if source.ext != "ttir" or "ttir" not in stages:
        raise Refused(
            "no-ttir", f"kernels that compile from {source.ext} (Gluon) have no TTIR", definition_site(source.fn)
        )
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    generate = backend.get_codegen_implementation(options)
    module = source.make_ir(gpu_target(target), options, generate, backend.get_module_map(), context)
    module.context = context
    return generic_form(stages["ttir"](module, {}))


def _failed(source: Any, target: Target, options: dict[str, Any], parsed: Any, error: Exception) -> Compiled:
    site = _error_site(source, error)
    said = _one_line(error)
    if _is_environment(error):
        reason = f"the host compile could not run: {said}"
        return Compiled(None, parsed, Refusal("host-compile-unavailable", reason, site))
    other = _target_that_compiles(source, target, options)
    if other is None:
        reason = f"the kernel does not compile for {target} or any other target: {said}"
        return Compiled(None, parsed, Refusal("compile-failed", reason, site), any_target=True)
    hint = f"it does for {other}: try --target {other} or {VARIABLE}={other}"
    reason = f"the kernel does not compile for {target}: {said}; {hint}"
    return Compiled(None, parsed, Refusal("compile-failed", reason, site))


def _is_environment(error: Exception) -> bool:
    """True for an error of the installation (missing libraries or files); the front end wraps errors of the kernel itself."""
    from triton.compiler.errors import CompilationError

    return not isinstance(error, CompilationError) and isinstance(error, (ImportError, OSError, AttributeError))


def _target_that_compiles(source: Any, target: Target, options: dict[str, Any]) -> Target | None:
    # The options are those of the failing target's backend: only what every backend knows is passed on.
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
    """The gist of an error: the last line of its innermost cause."""
    innermost: BaseException = error
    while innermost.__cause__ is not None:
        innermost = innermost.__cause__
    lines = [line.strip() for line in str(innermost).splitlines() if line.strip()]
    return f"{type(innermost).__name__}: {lines[-1] if lines else ''}"


def _error_site(source: Any, error: Exception) -> Site:
    """The line of the kernel a front end error points at (counted by Triton from the `def`), else the definition."""
    site = definition_site(source.fn)
    line = getattr(getattr(error, "node", None), "lineno", None)
    return site if line is None else replace(site, line=site.line + line - 1)
