"""Lets code written for `device="cuda"` run on CPU tensors, and follows which tensors hold what a skipped kernel left out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from racefree.triton import checks, cuda_stubs, customops
from racefree.triton.customops import WithMode
from racefree.triton.patches import Patches
from racefree.triton.placement import Placement
from racefree.triton.torchmode import device_mode_class

if TYPE_CHECKING:
    from racefree.triton.collector import Capture


@contextmanager
def redirecting(capture: Capture) -> Iterator[None]:
    """Redirects torch's CUDA device to the CPU in this thread, in threads started inside, and in autograd's backward."""
    from torch.overrides import _get_current_function_mode_stack

    placement = Placement(capture.book, lambda: capture.launches > 0, capture.note)
    mode_class = device_mode_class()

    def with_mode(call: Callable[[], Any]) -> Any:
        if any(isinstance(mode, mode_class) for mode in _get_current_function_mode_stack()):
            return call()
        with mode_class(placement):
            return call()

    with Patches() as patches:
        cuda_stubs.install(patches, capture.target)
        checks.install(patches, lambda: capture.launches > 0)
        customops.install(patches, with_mode)
        _follow_backward(patches, with_mode, placement)
        _follow_threads(patches, with_mode)
        _keep_default_device(patches, placement)
        patches.enter_context(mode_class(placement))
        yield


def _follow_backward(patches: Patches, with_mode: WithMode, placement: Placement) -> None:
    """Torch switches a mode off while a function it handles runs, `backward` too: what runs in there gets it back."""
    import torch.autograd
    from torch.autograd.function import BackwardCFunction

    def engine_of(real: Any) -> Callable[..., Any]:
        return lambda *args, **kwargs: with_mode(lambda: real(*args, **kwargs))

    def apply_of(real: Any) -> Callable[..., Any]:
        def apply(self: Any, *gradients: Any) -> Any:  # autograd may call it in a thread of its own
            placement.mark_gradients(gradients)
            return with_mode(lambda: real(self, *gradients))

        return apply

    patches.wrap(BackwardCFunction, "apply", apply_of)
    if hasattr(torch.autograd, "_engine_run_backward"):
        patches.wrap(torch.autograd, "_engine_run_backward", engine_of)


def _follow_threads(patches: Patches, with_mode: WithMode) -> None:
    def replace(real: Any) -> Callable[[threading.Thread], None]:
        def start(self: threading.Thread) -> None:
            body = self.run
            self.run = lambda: with_mode(body)  # type: ignore[method-assign]
            real(self)

        return start

    patches.wrap(threading.Thread, "start", replace)


def _keep_default_device(patches: Patches, placement: Placement) -> None:
    """`torch.set_default_device("cuda")` would put torch's own mode below ours, where nothing redirects it any more."""
    import torch

    before = torch.get_default_device()

    def replace(real: Any) -> Callable[[Any], None]:
        def set_default_device(device: Any) -> None:
            placement.default_is_device = device is not None and torch.device(device).type == "cuda"
            real(None if placement.default_is_device else device)

        return set_default_device

    def replace_query(real: Any) -> Callable[[], Any]:
        def get_default_device() -> Any:
            return torch.device("cuda", 0) if placement.default_is_device else real()

        return get_default_device

    def put_back() -> None:
        if torch.get_default_device() != before:
            torch.set_default_device(before)

    patches.callback(put_back)
    patches.wrap(torch, "set_default_device", replace)
    patches.wrap(torch, "get_default_device", replace_query)
