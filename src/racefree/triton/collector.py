"""Puts taken launches together config by config, and hands each over at the moment it is made."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from racefree.access import Site
from racefree.errors import Refusal, Refused
from racefree.forking import Rank, guarded
from racefree.graph.launch import LaunchFacts
from racefree.triton.arguments import BoundArguments, read_arguments, storages_in
from racefree.triton.contents import StorageBook, is_borrowed
from racefree.triton.hostcompile import HostCompiler, definition_site
from racefree.triton.interpreter import Running
from racefree.triton.kernel import HostKernel
from racefree.triton.launches import CapturedConfig, CapturedLaunch
from racefree.triton.patches import first_outside_frame
from racefree.triton.placement import torch_functions_off
from racefree.triton.targets import Target
from racefree.ttir.generic import GenericModule

OnLaunch = Callable[[CapturedLaunch], None]


class Group:
    """The configs of one launch while it is being made."""

    def __init__(self, function: Any, launch_site: Site, *, tuned: bool) -> None:
        self.function = function
        self.launch_site = launch_site
        self.tuned = tuned
        self.tuning: dict[str, Any] = {}
        self.configs: list[CapturedConfig] = []
        self.running: list[Running | None] = []
        self.skippable: list[str] = []
        self.notes: list[str] = []
        self.torch_storages: dict[int, Any] = {}
        self.unread_storages: list[Any] = []
        self.unknown_writes = False
        self.writes_anywhere = False
        self.seen: list[tuple[str, int, tuple[int, int, int], dict[str, Any]]] = []

    def unread(self, values: Sequence[Any]) -> None:
        """Notes the tensors of a config that could not be read: what it writes is not known either."""
        self.unknown_writes = True
        with torch_functions_off():
            self.unread_storages.extend(storages_in(values))

    def repeats(self, kernel: HostKernel, grid: tuple[int, int, int]) -> bool:
        """True for a config that equals an earlier one of this launch (only its stages differ, or it won and runs again)."""
        module, options = kernel.compiled.module, kernel.compiled.options
        if module is None or not self.tuned:
            return False
        for text, warps, where, tuning in self.seen:
            same = (text, warps, where) == (module.text, options.num_warps, grid)
            if same and (not self.tuning or tuning == self.tuning):
                return True
        self.seen.append((module.text, options.num_warps, grid, self.tuning))
        return False


class Capture:
    """A capture in progress: what `capturing` yields."""

    def __init__(self, on_launch: OnLaunch, target: Target, cap_bytes: int) -> None:
        self.target = target
        self.book = StorageBook(cap_bytes)
        self._compiler = HostCompiler(target)
        self.launches = 0
        self._on_launch = on_launch
        self._local = threading.local()
        self._delivery = guarded(Rank.TAKING)
        self._pending: list[str] = []
        self._noted: set[str] = set()
        self._caches: dict[int, tuple[Any, dict[str, Any]]] = {}
        self._tuned: dict[int, tuple[Any, dict[Any, Sequence[Any]]]] = {}

    def mark_written(self, addresses: Iterable[int], why: str = "") -> None:
        """Says which storages (by start address) the launch being delivered may write: their contents are stale from now on.

        Called from `on_launch`, in its thread. A launch about which nothing is said is taken to write every storage it was
        given. `why` says more about why it did not run.
        """
        self._local.told = set(self._local.told or ()) | set(addresses)
        self._local.why = why

    @property
    def running(self) -> tuple[Running | None, ...]:
        """Config by config what the launch being delivered in this thread would have run; to be used in `on_launch` only."""
        delivered: Group | None = getattr(self._local, "delivered", None)
        return () if delivered is None else tuple(delivered.running)

    def stale(self) -> frozenset[int]:
        """The start addresses of those storages of the launch being delivered whose contents are not known."""
        storages = self._delivered().torch_storages
        with self._delivery:
            return frozenset(address for address, s in storages.items() if self.book.why_stale(s) is not None)

    def unwritable(self, addresses: Iterable[int]) -> str:
        """Why one of these storages of the launch being delivered cannot be given new bytes, "" if all can."""
        storages = self._delivered().torch_storages
        borrowed = any(is_borrowed(storages[address]) for address in addresses)
        return "it may write memory that is not torch's own" if borrowed else ""

    def put(self, contents: Mapping[int, bytes], known: Iterable[int]) -> None:
        """Gives storages of the launch being delivered, by start address, new bytes; `known` ones are not stale any more."""
        storages = self._delivered().torch_storages
        with self._delivery:
            for address, data in contents.items():
                self.book.put(storages[address], data)
            for address in known:
                self.book.mark_clean(storages[address])

    def _delivered(self) -> Group:
        group: Group = self._local.delivered
        return group

    # ---- launches ----------------------------------------------------------------------------------------------------

    @contextmanager
    def group(self, function: Any, *, tuned: bool = False) -> Iterator[Group]:
        """Collects the configs of one launch of `function` and hands them over at the end; an inner use joins the outer."""
        stack: list[Group] = self._stack()
        if stack and stack[-1].function is function:
            yield stack[-1]
            return
        group = Group(function, first_outside_frame(), tuned=tuned)
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
                arguments = dict(zip(kernel.src.signature, values, strict=False))
                group.running.append(None if config.facts is None else Running(kernel.src.fn, arguments, grid))

    def record_uncompiled(self, function: Any, why: str, values: Sequence[Any]) -> None:
        """A launch of something that Triton does not compile."""
        with self.group(function) as group:
            self._record_failure(group, Refusal("no-compiled-kernel", why, group.launch_site), values)

    def refuses(self, function: Any, options: dict[str, Any], values: Sequence[Any]) -> bool:
        """Whether the target cannot have the options of a launch; the launch is recorded as one that does not compile."""
        refusal = self._compiler.refused(function, options)
        if refusal is None:
            return False
        with self.group(function) as group:
            self._record_failure(group, refusal, values)
        return True

    def _record_failure(self, group: Group, refusal: Refusal, values: Sequence[Any]) -> None:
        group.unread(values)
        group.configs.append(CapturedConfig(None, None, dict(group.tuning), refusal))
        group.running.append(None)

    def _config(
        self, kernel: HostKernel, grid: tuple[int, int, int], values: Sequence[Any], group: Group
    ) -> CapturedConfig:
        compiled, tuning = kernel.compiled, dict(group.tuning)
        if compiled.failure is not None:
            group.unread(values)
            return CapturedConfig(None, None, tuning, compiled.failure)
        try:
            with torch_functions_off(), self._delivery:
                bound = read_arguments(kernel.src.signature, values, self.book)
        except Refused as refused:
            group.unread(values)
            return CapturedConfig(None, compiled.module, tuning, refused.refusal)
        if bound.untracked or (compiled.module is not None and _makes_pointers(compiled.module)):
            group.writes_anywhere = True
        group.torch_storages.update(bound.torch_storages)
        return CapturedConfig(_facts(kernel, grid, bound, tuning), compiled.module, tuning)

    def _deliver(self, group: Group) -> None:
        if not group.configs and group.skippable:
            refusal = Refusal("compile-failed", group.skippable[0], definition_site(group.function))
            group.configs.append(CapturedConfig(None, None, {}, refusal))
        else:
            group.notes.extend(f"an autotune config was left out: {why}" for why in sorted(set(group.skippable)))
        if not group.configs:
            return
        name = str(getattr(group.function, "__name__", group.function))
        site = _site_or(group.function, group.launch_site)
        with torch_functions_off():
            with self._delivery:
                pending, self._pending = self._pending, []
                self.launches += 1
            launch = CapturedLaunch(name, site, group.launch_site, tuple(group.configs), (*group.notes, *pending))
            outer = getattr(self._local, "delivered", None), getattr(self._local, "told", None)
            self._local.delivered, self._local.told, self._local.why = group, None, ""
            try:
                self._on_launch(launch)
            finally:
                told, reason = self._local.told, self._local.why
                self._local.delivered, self._local.told = outer
                with self._delivery:
                    self._mark_stale(group, name, told, reason)

    def _mark_stale(self, group: Group, name: str, told: set[int] | None, reason: str) -> None:
        why = f"an earlier launch of {name}, which did not run{f' ({reason})' if reason else ''}, writes it"
        if group.unknown_writes:
            told = None
        for address, storage in group.torch_storages.items():
            if told is None or address in told:
                self.book.mark_stale(storage, why)
        for storage in group.unread_storages:
            self.book.mark_stale(storage, why)
        if group.writes_anywhere:
            self.book.distrust_all(f"an earlier launch of {name}, which did not run, may write anywhere")

    def note(self, text: str) -> None:
        """A note for the next launch that is handed over, made once."""
        if text not in self._noted:
            self._noted.add(text)
            self._pending.append(text)

    def _stack(self) -> list[Group]:
        if not hasattr(self._local, "stack"):
            self._local.stack = []
        stack: list[Group] = self._local.stack
        return stack

    # ---- kernels -----------------------------------------------------------------------------------------------------

    def compile(self, source: Any, options: dict[str, Any]) -> HostKernel:
        """What Triton calls to compile: TTIR only, failures included in what is returned."""
        return HostKernel(source, self.target, self._compiler.compile(source, options), self.record)

    def adopt(self, function: Any) -> None:
        """Gives a JIT function caches of this capture's own, kept apart from those of real launches."""
        with self._delivery:
            if id(function) in self._caches:
                return
            kept = {k: function.__dict__[k] for k in _CACHE_FIELDS if k in function.__dict__}
            self._caches[id(function)] = (function, kept)
            function.device_caches = defaultdict(function.create_binder)

    def survivors(
        self, tuner: Any, key: tuple[Any, ...], prune: Callable[[], Sequence[Any]]
    ) -> tuple[Sequence[Any], bool]:
        """The configs left by pruning the first time an autotuner meets a key in this capture, and whether this is the time."""
        _, kept = self._tuned.setdefault(id(tuner), (tuner, {}))
        first = key not in kept
        if first:
            kept[key] = prune()
        return kept[key], first

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


def _makes_pointers(module: GenericModule) -> bool:
    return "tt.int_to_ptr" in module.text
