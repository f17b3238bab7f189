"""Custom operators registered for CUDA run on CPU tensors, and their Python bodies see the pretended device."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from racefree.triton.patches import Patches

_GENERAL = frozenset(("", "CompositeExplicitAutograd", "CompositeImplicitAutograd"))
_BACKENDS = frozenset(("CPU", "CUDA", "HIP"))
_NOT_OURS = ("aten", "prims", "_inductor", "inductor")  # torch itself, and we with it, runs on the CPU kernels of these

WithMode = Callable[[Callable[[], Any]], Any]


def install(patches: Patches, with_mode: WithMode) -> None:
    """Wraps what is registered with `torch.library` inside the capture; where CPU and device have a body, the device's runs.

    Torch cannot take a registration back. After the capture the CPU's body runs as if it had never been wrapped, and an
    operator without one raises NotImplementedError on CPU tensors, as torch does.
    """
    import torch

    on = [True]
    patches.callback(on.clear)
    hosts: dict[str, Any] = {}
    devices: dict[str, Any] = {}

    def host_body(operator: str) -> Callable[..., Any]:
        def body(*args: Any, **kwargs: Any) -> Any:
            function = devices.get(operator) if on else None
            function = function or hosts.get(operator)
            if function is None:
                raise NotImplementedError(f"{operator} has no kernel for CPU tensors")
            return with_mode(lambda: function(*args, **kwargs)) if on else function(*args, **kwargs)

        return body

    def general_body(function: Any) -> Callable[..., Any]:
        @functools.wraps(function)
        def body(*args: Any, **kwargs: Any) -> Any:
            return with_mode(lambda: function(*args, **kwargs)) if on else function(*args, **kwargs)

        return body

    def replace(real: Any) -> Callable[..., Any]:
        def impl(self: Any, op_name: Any, fn: Any, dispatch_key: str = "", **options: Any) -> Any:
            key, operator = dispatch_key or self.dispatch_key, _qualified(self.ns, op_name)
            if self.ns.startswith(_NOT_OURS) or not _is_body(fn):
                return real(self, op_name, fn, dispatch_key, **options)
            if key in _GENERAL:
                return real(self, op_name, general_body(fn), dispatch_key, **options)
            if key not in _BACKENDS:
                return real(self, op_name, fn, dispatch_key, **options)
            first = operator not in hosts and operator not in devices
            (hosts if key == "CPU" else devices)[operator] = fn
            if first:
                real(self, op_name, host_body(operator), "CPU", **options)
            return None if key == "CPU" else real(self, op_name, fn, dispatch_key, **options)

        return impl

    patches.wrap(torch.library.Library, "impl", replace)


def _qualified(namespace: str, operator: Any) -> str:
    name = str(getattr(operator, "_name", operator)).split("::")[-1]
    return f"{namespace}::{name.removesuffix('.default')}"


def _is_body(function: Any) -> bool:
    from torch.library import fallthrough_kernel

    return callable(function) and function is not fallthrough_kernel
