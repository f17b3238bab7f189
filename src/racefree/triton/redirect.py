"""Lets code written for `device="cuda"` run on CPU tensors, and follows which tensors hold what a skipped kernel left out."""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from racefree.triton import checks, cuda_stubs
from racefree.triton.patches import Patches
from racefree.triton.placement import Placement
from racefree.triton.torchmode import device_mode_class

if TYPE_CHECKING:
    from racefree.triton.capture import Capture


@contextmanager
def redirecting(capture: Capture) -> Iterator[None]:
    """Redirects torch's CUDA device to the CPU in this thread, in threads started inside, and in autograd's backward."""
    import torch

    placement = Placement(capture.book, lambda: capture.launches > 0)
    mode_class = device_mode_class()

    def new_mode() -> Any:
        return mode_class(placement)

    with Patches() as patches:
        cuda_stubs.install(patches, capture.target)
        checks.install(patches, lambda: capture.launches > 0)
        _follow_backward(patches, torch, new_mode, mode_class)
        _follow_threads(patches, new_mode)
        _keep_default_device(patches, torch, placement)
        patches.enter(new_mode())
        yield


def _follow_backward(patches: Patches, torch: Any, new_mode: Any, mode_class: Any) -> None:
    """Torch switches a mode off while a function it handles runs, `Tensor.backward` too: user code in there gets it back."""
    from torch.autograd.function import BackwardCFunction
    from torch.overrides import _get_current_function_mode_stack

    real = inspect.unwrap(BackwardCFunction.apply)

    @functools.wraps(real)
    def apply(self: Any, *args: Any) -> Any:
        if any(isinstance(mode, mode_class) for mode in _get_current_function_mode_stack()):
            return real(self, *args)
        with new_mode():
            return real(self, *args)

    patches.set(BackwardCFunction, "apply", apply)


def _follow_threads(patches: Patches, new_mode: Any) -> None:
    real = inspect.unwrap(threading.Thread.start)

    @functools.wraps(real)
    def start(self: threading.Thread) -> None:
        body = self.run

        def run() -> None:
            with new_mode():
                body()

        self.run = run  # type: ignore[method-assign]
        real(self)

    patches.set(threading.Thread, "start", start)


def _keep_default_device(patches: Patches, torch: Any, placement: Placement) -> None:
    """`torch.set_default_device("cuda")` would put torch's own mode below ours, where nothing redirects it any more."""
    real = inspect.unwrap(torch.set_default_device)

    @functools.wraps(real)
    def set_default_device(device: Any) -> None:
        placement.default_is_device = device is not None and torch.device(device).type == "cuda"
        real(None if placement.default_is_device else device)

    patches.set(torch, "set_default_device", set_default_device)
    patches.callback(real, None if torch.get_default_device().type == "cpu" else torch.get_default_device())
