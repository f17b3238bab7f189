"""Takes every Triton launch made in a block of code on the host, without running the kernels."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from racefree.errors import InputError, RacefreeError, Refusal
from racefree.triton.collector import Capture, OnLaunch
from racefree.triton.contents import DEFAULT_CAP_BYTES
from racefree.triton.launches import CapturedConfig, CapturedLaunch
from racefree.triton.patches import Patches, first_outside_frame
from racefree.triton.seams import install
from racefree.triton.targets import parse_target
from racefree.triton.versions import require_torch, require_triton

_entry = threading.RLock()  # the seams are attributes of Triton's modules: one thread holds a capture at a time


def _enter_anew() -> None:
    """In a forked child: a capture of a thread that the child does not have keeps nobody waiting."""
    global _entry
    if not _entry._is_owned():  # type: ignore[attr-defined]
        _entry = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_enter_anew)


@contextmanager
def capturing(
    on_launch: OnLaunch,
    *,
    target: str | None = None,
    redirect: bool = True,
    contents_cap_bytes: int = DEFAULT_CAP_BYTES,
) -> Iterator[Capture]:
    """Takes every Triton launch made inside, calls `on_launch` for each, and runs no kernel.

    `on_launch` runs at the time of the launch, in its thread, beside that of other threads' launches. `target` is one for
    `parse_target`. With `redirect`, code written for `device="cuda"` runs on CPU tensors. `contents_cap_bytes` bounds the
    copies of integer tensors of one launch. Everything is undone at exit. Other threads wait until the capture ends before
    they begin one.
    Raises `MissingPackage`, `UnsupportedVersion`, `InputError` (bad target).
    """
    require_triton()
    require_torch()
    with _entry, ExitStack() as undo:
        capture = Capture(on_launch, parse_target(target), contents_cap_bytes)
        undo.callback(capture.release)
        install(capture, undo.enter_context(Patches()))
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
