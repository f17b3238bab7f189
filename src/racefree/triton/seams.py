"""Where Triton is held: the active driver and the function that compiles. The rest groups launches and keeps caches apart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from racefree.triton.autotune import run_every_config, tuning_with
from racefree.triton.collector import Capture
from racefree.triton.driver import host_driver
from racefree.triton.hostcompile import jit_function
from racefree.triton.patches import Patches


def install(capture: Capture, patches: Patches) -> None:
    """Sends every launch of this process to `capture`, until `patches` is left."""
    from triton import knobs
    from triton.runtime.driver import driver

    patches.set(driver, "_active", host_driver(capture.target))
    _hold_compile(capture, patches)
    _hold_launches(capture, patches)
    _hold_autotuner(capture, patches)
    _forget_hashes(patches)
    patches.enter_context(knobs.runtime.scope())
    patches.enter_context(knobs.compilation.scope())
    knobs.runtime.interpret = False
    knobs.compilation.disable_line_info = False


def _hold_compile(capture: Capture, patches: Patches) -> None:
    import triton
    import triton.compiler
    import triton.compiler.compiler

    def replace(real: Any) -> Callable[..., Any]:
        def compile(src: Any, target: Any = None, options: Any = None, _env_vars: Any = None) -> Any:
            if not hasattr(src, "fn"):  # a path of an IR file: no launch of a kernel of this program
                return real(src, target=target, options=options, _env_vars=_env_vars)
            return capture.compile(src, dict(options or {}))

        return compile

    for module in (triton.compiler.compiler, triton.compiler, triton):
        patches.wrap(module, "compile", replace)


def _hold_launches(capture: Capture, patches: Patches) -> None:
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITFunction, KernelInterface

    def run_of(real: Any) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            capture.adopt(self)
            with capture.group(self):
                if not kwargs.get("warmup") and capture.refuses(self, kwargs, [*args, *kwargs.values()]):
                    return None
                return real(self, *args, **kwargs)

        return run

    def bracket_of(real: Any) -> Callable[..., Any]:
        def bracket(self: Any, grid: Any) -> Any:
            launch, function = real(self, grid), jit_function(self)
            if function is self or function is None:
                return launch

            def grouped(*args: Any, **kwargs: Any) -> Any:
                # Autotuners of other projects replace `run` as a whole: what one bracketed launch takes belongs together.
                with capture.group(function, tuned=hasattr(self, "configs")):
                    return launch(*args, **kwargs)

            return grouped

        return bracket

    def interpreted_of(real: Any) -> Callable[..., Any]:
        def interpreted(self: Any, *args: Any, **kwargs: Any) -> None:
            why = "the kernel was made for Triton's interpreter: unset TRITON_INTERPRET"
            capture.record_uncompiled(self, why, [*args, *kwargs.values()])

        return interpreted

    patches.wrap(JITFunction, "run", run_of)
    patches.wrap(KernelInterface, "__getitem__", bracket_of)
    patches.wrap(InterpretedFunction, "run", interpreted_of)


def _hold_autotuner(capture: Capture, patches: Patches) -> None:
    from triton.runtime.autotuner import Autotuner

    def run_of(real: Any) -> Callable[..., Any]:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            return run_every_config(capture, self, args, kwargs)

        return run

    def bench_of(real: Any) -> Callable[..., Any]:
        def bench(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
            with capture.group(jit_function(self), tuned=True) as group, tuning_with(group, config):
                return real(self, *args, config=config, **meta)

        return bench

    patches.wrap(Autotuner, "run", run_of)
    patches.wrap(Autotuner, "_bench", bench_of)


def _forget_hashes(patches: Patches) -> None:
    """Undoes at exit the hashes Triton computes inside, with which it would check globals against their values of now."""
    from triton.runtime.jit import JITCallable

    real = vars(JITCallable)["cache_key"]
    hashed: list[Any] = []

    def cache_key(self: Any) -> Any:
        if self.hash is None:
            hashed.append(self)
        return real.fget(self)

    def forget() -> None:
        for function in hashed:
            function.hash = None
            function.used_global_vals = {}

    patches.set(JITCallable, "cache_key", property(cache_key))
    patches.callback(forget)
