"""What Triton asks of an active driver, answered for a target that is not there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from racefree.triton.targets import Target, gpu_target


def host_driver(target: Target) -> Any:
    """A driver object for `triton.runtime.driver.set_active`; needs an importable Triton."""
    from triton.backends.driver import DriverBase

    class HostDriver(DriverBase):  # type: ignore[misc]
        launcher_cls = None

        def __init__(self) -> None:
            self.utils = _DeviceUtilities(target)

        @classmethod
        def is_active(cls) -> bool:
            return True

        def map_python_to_cpp_type(self, ty: str) -> str:
            return ty

        def get_current_target(self) -> Any:
            return gpu_target(target)

        def get_current_device(self) -> int:
            return 0

        def set_current_device(self, device: int) -> None:
            return None

        def get_current_stream(self, device: int | None = None) -> int:
            return 0

        def get_device_capability(self, device: int | None = None) -> tuple[int, int]:
            return target.capability

        def get_active_torch_device(self) -> Any:
            import torch

            return torch.device("cuda", 0)

        def get_device_interface(self) -> Any:
            import torch

            return torch.cuda

        def get_empty_cache_for_benchmark(self) -> Any:
            import torch

            return torch.empty(1)

        def clear_cache(self, cache: Any) -> None:
            return None

        def get_benchmarker(self) -> Callable[..., list[float]]:
            return bench_once

    return HostDriver()


def bench_once(kernel_call: Callable[[], object], quantiles: Sequence[float] | None = None, **_: Any) -> list[float]:
    """A benchmarker that calls once, so that each config of a sweep is taken, and finds all of them equally fast."""
    kernel_call()
    return [1.0] * len(quantiles or (0.5, 0.2, 0.8))


class _DeviceUtilities:
    """`driver.active.utils`: device properties for scripts that size their grid by them; nothing is ever loaded."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        return {
            "max_shared_mem": self._target.shared_bytes,
            "max_num_regs": 65536,
            "multiprocessor_count": self._target.multiprocessors,
            "warpSize": self._target.warp_size,
            "sm_clock_rate": 1_410_000,
            "mem_clock_rate": 1_215_000,
            "mem_bus_width": 5120,
        }

    def unload_module(self, module: Any) -> None:
        return None

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None
