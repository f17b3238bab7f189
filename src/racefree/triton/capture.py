"""Takes every Triton launch made in a block of code on the host, without running the kernels."""

from __future__ import annotations

import functools
import inspect
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from racefree.access import Site
from racefree.errors import InputError, RacefreeError, Refusal, Refused
from racefree.graph.launch import LaunchFacts
from racefree.triton.arguments import BoundArguments, read_arguments
from racefree.triton.contents import DEFAULT_CAP_BYTES, StorageBook
from racefree.triton.driver import host_driver
from racefree.triton.hostcompile import definition_site, host_compile
from racefree.triton.kernel import HostKernel
from racefree.triton.launches import CapturedConfig, CapturedLaunch
from racefree.triton.patches import Patches, first_outside_frame
from racefree.triton.targets import Target, parse_target
from racefree.triton.versions import require_torch, require_triton

OnLaunch = Callable[[CapturedLaunch], None]

_ENTRY = threading.RLock()  # the seams are attributes of Triton's modules: one thread holds a capture at a time


class _Group:
    """The configs of one launch while it is being made."""

    def __init__(self, function: Any, launch_site: Site, *, tuned: bool) -> None:
        self.function = function
        self.launch_site = launch_site
        self.tuned = tuned
        self.tuning: dict[str, Any] = {}
        self.configs: list[CapturedConfig] = []
        self.skippable: list[str] = []
        self.notes: list[str] = []
        self.torch_storages: dict[int, Any] = {}
        self.seen: list[tuple[str, int, tuple[int, int, int], dict[str, Any]]] = []

    def repeats(self, kernel: HostKernel, grid: tuple[int, int, int]) -> bool:
        """True for a config that compiles to what an earlier one of this launch does: stages differ, or it is the best one, again."""
        module, options = kernel.compiled.module, kernel.compiled.options
        if module is None or not self.tuned:
            return False
        for text, warps, where, tuning in self.seen:
            if (text, warps, where) == (module.text, options.num_warps, grid) and (not self.tuning or tuning == self.tuning):
                return True
        self.seen.append((module.text, options.num_warps, grid, self.tuning))
        return False


class Capture:
    """A capture in progress: what `capturing` yields."""

    def __init__(self, on_launch: OnLaunch, target: Target, cap_bytes: int) -> None:
        self.target = target
        self.book = StorageBook(cap_bytes)
        self.launches = 0
        self._on_launch = on_launch
        self._local = threading.local()
        self._delivery = threading.RLock()
        self._told: set[int] | None = None
        self._storages: dict[int, Any] = {}
        self._caches: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._tuned: dict[int, tuple[Any, list[Any]]] = {}

    def mark_written(self, addresses: Iterable[int]) -> None:
        """Says which storages (by start address) the launch being delivered may write: their contents are stale from now on.

        Called from `on_launch`. A launch about which nothing is said is taken to write every storage it was given.
        """
        self._told = set(self._told or ()) | set(addresses)

    # ---- launches ----------------------------------------------------------------------------------------------------

    @contextmanager
    def group(self, function: Any, *, tuned: bool = False) -> Iterator[_Group]:
        """Collects the configs of one launch of `function` and hands them over at the end; an inner use joins the outer."""
        stack: list[_Group] = self._stack()
        if stack and stack[-1].function is function:
            yield stack[-1]
            return
        group = _Group(function, first_outside_frame(), tuned=tuned)
        stack.append(group)
        try:
            yield group
        except BaseException as error:
            stack.pop()
            if isinstance(error, Exception):
                self._deliver(group)
            raise
        stack.pop()
        self._deliver(group)

    def record(self, kernel: HostKernel, grid: tuple[int, int, int], values: Sequence[Any]) -> None:
        """One config of a launch, with its grid and bound arguments."""
        with self.group(kernel.src.fn) as group:
            if group.repeats(kernel, grid):
                return
            config = self._config(kernel, grid, values, group)
            if kernel.compiled.any_target and config.failure is not None and group.tuned:
                group.skippable.append(config.failure.reason)
            else:
                group.configs.append(config)

    def record_uncompiled(self, function: Any, why: str) -> None:
        """A launch of something that Triton does not compile."""
        with self.group(function) as group:
            refusal = Refusal("no-compiled-kernel", why, group.launch_site)
            group.configs.append(CapturedConfig(None, None, {}, refusal))

    def _config(
        self, kernel: HostKernel, grid: tuple[int, int, int], values: Sequence[Any], group: _Group
    ) -> CapturedConfig:
        compiled, tuning = kernel.compiled, dict(group.tuning)
        if compiled.failure is not None:
            return CapturedConfig(None, None, tuning, compiled.failure)
        try:
            with _plain_torch(), self._delivery:
                bound = read_arguments(kernel.src.signature, values, self.book)
        except Refused as refused:
            return CapturedConfig(None, compiled.module, tuning, refused.refusal)
        group.torch_storages.update(bound.torch_storages)
        return CapturedConfig(_facts(kernel, grid, bound, tuning), compiled.module, tuning)

    def _deliver(self, group: _Group) -> None:
        if not group.configs and group.skippable:
            refusal = Refusal("compile-failed", group.skippable[0], definition_site(group.function))
            group.configs.append(CapturedConfig(None, None, {}, refusal))
        else:
            group.notes.extend(f"a config was left out, Triton would skip it: {why}" for why in sorted(set(group.skippable)))
        if not group.configs:
            return
        name = str(getattr(group.function, "__name__", group.function))
        site = _site_or(group.function, group.launch_site)
        launch = CapturedLaunch(name, site, group.launch_site, tuple(group.configs), tuple(group.notes))
        with _plain_torch(), self._delivery:
            self._told = None
            self.launches += 1
            try:
                self._on_launch(launch)
            finally:
                self._mark_stale(group, name)

    def _mark_stale(self, group: _Group, name: str) -> None:
        why = f"an earlier launch of {name}, which did not run, writes it"
        told = self._told
        for address, storage in group.torch_storages.items():
            if told is None or address in told:
                self.book.mark_stale(storage, why)

    def _stack(self) -> list[_Group]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        stack: list[_Group] = self._local.stack
        return stack

    # ---- kernels -----------------------------------------------------------------------------------------------------

    def compile(self, source: Any, options: dict[str, Any]) -> HostKernel:
        """What Triton calls to compile: TTIR only, failures included in what is returned."""
        getattr(source.fn, "cache_key", None)  # notes the globals the kernel reads, so Triton's own check sees them change
        return HostKernel(source, self.target, host_compile(source, self.target, options), self.record)

    def adopt(self, function: Any) -> None:
        """Gives a JIT function caches of this capture's own, kept apart from those of real launches."""
        with self._delivery:
            if id(function) in self._caches:
                return
            kept = {k: function.__dict__[k] for k in _CACHE_FIELDS if k in function.__dict__}
            self._caches[id(function)] = (function, kept)
            function.device_caches = defaultdict(function.create_binder)

    def first_tuning(self, tuner: Any, key: tuple[Any, ...]) -> bool:
        """True the first time an autotuner meets a key in this capture: Triton would benchmark then."""
        _, seen = self._tuned.setdefault(id(tuner), (tuner, []))
        if key in seen:
            return False
        seen.append(key)
        return True

    def release(self) -> None:
        """Gives every adopted JIT function its own caches back."""
        for function, kept in self._caches.values():
            for name in _CACHE_FIELDS:
                function.__dict__.pop(name, None)
            function.__dict__.update(kept)
        self._caches.clear()


_CACHE_FIELDS = ("device_caches", "compile", "CompiledKernel", "ASTSource")


def _facts(
    kernel: HostKernel, grid: tuple[int, int, int], bound: BoundArguments, tuning: dict[str, Any]
) -> LaunchFacts:
    options, module = kernel.compiled.options, kernel.compiled.module
    return LaunchFacts(
        kernel=kernel.name,
        grid=grid,
        arguments=bound.arguments,
        num_warps=int(options.num_warps),
        warp_size=int(getattr(options, "warp_size", None) or kernel.target.warp_size),
        num_ctas=int(getattr(options, "num_ctas", 1) or 1),
        target=str(kernel.target),
        triton_version=module.triton_version if module is not None else "",
        config=tuning,
        constants=bound.constants,
    )


def _site_or(function: Any, fallback: Site) -> Site:
    try:
        return definition_site(function)
    except AttributeError:
        return fallback


def _plain_torch() -> Any:
    import torch

    return torch._C.DisableTorchFunction()


# ---- the two entry points --------------------------------------------------------------------------------------------


@contextmanager
def capturing(
    on_launch: OnLaunch,
    *,
    target: str | None = None,
    redirect: bool = True,
    contents_cap_bytes: int = DEFAULT_CAP_BYTES,
) -> Iterator[Capture]:
    """Takes every Triton launch made inside, calls `on_launch` for each, and runs no kernel.

    `on_launch` runs at the time of the launch, in its thread, one at a time. `target` is one for `parse_target`. With `redirect`
    code written for `device="cuda"` runs on CPU tensors. `contents_cap_bytes` bounds the copies of integer tensors of one launch.
    Everything is undone at exit. Raises `MissingPackage`, `UnsupportedVersion`, `InputError` (bad target).
    """
    require_triton()
    require_torch()
    with _ENTRY, ExitStack() as undo:
        capture = Capture(on_launch, parse_target(target), contents_cap_bytes)
        undo.callback(capture.release)
        _install(capture, undo.enter_context(Patches()))
        if redirect:
            from racefree.triton.redirect import redirecting

            undo.enter_context(redirecting(capture))
        yield capture


def capture_one(
    kernel: Any, args: Sequence[Any], kwargs: dict[str, Any], grid: Any, target: str | None = None
) -> CapturedLaunch:
    """The one launch `kernel[grid](*args, **kwargs)`, where `kernel` is any Triton kernel (JIT, autotuned, with heuristics).

    Raises `InputError` when the arguments do not fit the kernel.
    """
    require_triton()
    from triton.runtime.jit import KernelInterface

    name = str(getattr(kernel, "__name__", None) or type(kernel).__name__)
    here = first_outside_frame()
    if not isinstance(kernel, KernelInterface):
        refusal = Refusal("no-compiled-kernel", f"{name} is no Triton kernel: decorate it with @triton.jit", here)
        return CapturedLaunch(name, here, here, (CapturedConfig(None, None, {}, refusal),))
    taken: list[CapturedLaunch] = []
    with capturing(taken.append, target=target):
        try:
            kernel[grid](*args, **kwargs)
        except RacefreeError:
            raise
        except Exception as error:
            raise InputError(f"launching {name} failed: {type(error).__name__}: {error}") from error
    if not taken:
        refusal = Refusal("no-compiled-kernel", f"{name} made no launch that Triton compiles", here)
        return CapturedLaunch(name, here, here, (CapturedConfig(None, None, {}, refusal),))
    return taken[-1]


# ---- the seams -------------------------------------------------------------------------------------------------------


def _install(capture: Capture, patches: Patches) -> None:
    """Two seams: the active driver, and the function that compiles. The rest only groups launches and keeps caches apart."""
    import triton
    import triton.compiler
    import triton.compiler.compiler
    from triton import knobs
    from triton.runtime.autotuner import Autotuner
    from triton.runtime.driver import driver
    from triton.runtime.interpreter import InterpretedFunction
    from triton.runtime.jit import JITCallable, JITFunction, KernelInterface

    from racefree.triton.autotune import run_every_config

    patches.set(driver, "_active", host_driver(capture.target))
    real_compile = inspect.unwrap(triton.compiler.compiler.compile)

    @functools.wraps(real_compile)
    def compile(src: Any, target: Any = None, options: Any = None, _env_vars: Any = None) -> Any:
        if isinstance(src, str) or not hasattr(src, "fn"):
            return real_compile(src, target=target, options=options, _env_vars=_env_vars)
        return capture.compile(src, dict(options or {}))

    for module in (triton, triton.compiler, triton.compiler.compiler):
        patches.set(module, "compile", compile)

    jit_run = inspect.unwrap(JITFunction.run)

    @functools.wraps(jit_run)
    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        capture.adopt(self)
        with capture.group(self):
            return jit_run(self, *args, **kwargs)

    patches.set(JITFunction, "run", run)

    tuner_run = inspect.unwrap(Autotuner.run)

    @functools.wraps(tuner_run)
    def tune(self: Any, *args: Any, **kwargs: Any) -> Any:
        return run_every_config(capture, self, args, kwargs)

    patches.set(Autotuner, "run", tune)

    bench = inspect.unwrap(Autotuner._bench)

    @functools.wraps(bench)
    def bench_config(self: Any, *args: Any, config: Any, **meta: Any) -> Any:
        from racefree.triton.autotune import tuning_with

        with capture.group(_jit_function(self), tuned=True) as group, tuning_with(group, config):
            return bench(self, *args, config=config, **meta)

    patches.set(Autotuner, "_bench", bench_config)

    get_item = inspect.unwrap(KernelInterface.__getitem__)

    @functools.wraps(get_item)
    def launcher(self: Any, grid: Any) -> Any:
        launch = get_item(self, grid)
        function = _jit_function(self)
        if function is self or not isinstance(function, JITFunction):
            return launch

        def grouped(*args: Any, **kwargs: Any) -> Any:
            # Autotuners of other projects replace `run` as a whole: what one bracketed launch takes belongs together.
            with capture.group(function, tuned=hasattr(self, "configs")):
                return launch(*args, **kwargs)

        return grouped

    patches.set(KernelInterface, "__getitem__", launcher)

    interpreted = inspect.unwrap(InterpretedFunction.run)

    @functools.wraps(interpreted)
    def uncompiled(self: Any, *args: Any, **kwargs: Any) -> None:
        capture.record_uncompiled(self, "the kernel was made for Triton's interpreter: unset TRITON_INTERPRET")

    patches.set(InterpretedFunction, "run", uncompiled)
    _forget_hashes(patches, JITCallable)
    patches.enter(knobs.runtime.scope())
    patches.enter(knobs.compilation.scope())
    knobs.runtime.interpret = False
    knobs.compilation.disable_line_info = False


def _jit_function(kernel: Any) -> Any:
    from triton.runtime.jit import JITFunction

    while not isinstance(kernel, JITFunction) and hasattr(kernel, "fn"):
        kernel = kernel.fn
    return kernel


def _forget_hashes(patches: Patches, callable_class: Any) -> None:
    """Undoes at exit the hashes Triton computes inside, with which it would check globals against their values of now."""
    real = callable_class.cache_key
    hashed: list[Any] = []

    def cache_key(self: Any) -> Any:
        if self.hash is None:
            hashed.append(self)
        return real.fget(self)

    patches.set(callable_class, "cache_key", property(cache_key))

    def forget() -> None:
        for function in hashed:
            function.hash = None
            function.used_global_vals = {}

    patches.callback(forget)
