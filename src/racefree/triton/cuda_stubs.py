"""Stand-ins for the queries of `torch.cuda`, `torch.accelerator` and `triton.testing`, answered for the target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from racefree.triton.driver import bench_once
from racefree.triton.patches import Patches
from racefree.triton.targets import Target

_MEMORY_BYTES = 80 << 30
_STATE_BYTES = 16


def install(patches: Patches, target: Target) -> None:
    """Replaces what a CPU build of torch cannot answer; undone with `patches`."""
    import torch

    patches.set_all(torch.cuda, _cuda(target))
    patches.set_all(torch.accelerator, _accelerator())
    raw = {"_cuda_getCurrentRawStream": 0, "_cuda_getDeviceCount": 1, "_cuda_getDevice": 0}
    patches.set_all(torch._C, {name: _constant(value) for name, value in raw.items()})
    if target.backend == "cuda":
        patches.set(torch.version, "cuda", torch.version.cuda or "13.0")
    else:
        patches.set(torch.version, "hip", torch.version.hip or "7.0")
    generator = _generator(torch.Generator)
    patches.set(torch, "Generator", generator)
    patches.set(torch.cuda, "default_generators", (generator("cuda"),))
    patches.set(torch, "compile", _eager)
    _redirect_autocast(patches)
    patches.wrap(torch, "load", _load_on_host)
    _stub_benchmarks(patches)


class DeviceContext:
    """Stands in for device guards, streams, events and graphs: any argument, any method, no effect."""

    cuda_stream = 0
    device_index = 0
    stream_id = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.idx = 0

    def __enter__(self) -> DeviceContext:
        return self

    def __exit__(self, *exc: object) -> None:
        return None

    def __call__(self, function: Any) -> Any:
        return function

    @property
    def device(self) -> Any:
        return _device()

    def elapsed_time(self, other: Any) -> float:
        """Ten seconds, in milliseconds: who repeats a launch until enough time has passed is content with the first."""
        return 10_000.0

    def query(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *args, **kwargs: None


def _device() -> Any:
    import torch

    return torch.device("cuda", 0)


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _properties(target: Target) -> SimpleNamespace:
    major, minor = target.capability
    return SimpleNamespace(
        name=target.device_name, major=major, minor=minor, total_memory=_MEMORY_BYTES, warp_size=target.warp_size,
        multi_processor_count=target.multiprocessors, max_threads_per_multi_processor=2048, regs_per_multiprocessor=65536,
        L2_cache_size=40 << 20, gcnArchName=str(target.arch) if target.backend == "hip" else "", is_integrated=False,
        shared_memory_per_block=49152, shared_memory_per_block_optin=target.shared_bytes,
        shared_memory_per_multiprocessor=target.shared_bytes, clock_rate=1_410_000, memory_clock_rate=1_215_000,
        memory_bus_width=5120, is_multi_gpu_board=False, uuid="racefree",
    )  # fmt: skip


def _cuda(target: Target) -> dict[str, Any]:
    nothing = "synchronize empty_cache set_device init _lazy_init manual_seed manual_seed_all reset_peak_memory_stats"
    nothing += " ipc_collect set_stream reset_max_memory_allocated seed seed_all set_per_process_memory_fraction"
    zero = "current_device memory_allocated max_memory_allocated memory_reserved max_memory_reserved"
    yes = "is_available is_initialized is_bf16_supported"
    contexts = "Stream Event ExternalStream device device_of stream CUDAGraph graph"
    return {
        **{name: _constant(None) for name in nothing.split()},
        **{name: _constant(0) for name in zero.split()},
        **{name: _constant(True) for name in yes.split()},
        **dict.fromkeys(contexts.split(), DeviceContext),
        "device_count": _constant(1),
        "current_stream": lambda device=None: DeviceContext(),
        "default_stream": lambda device=None: DeviceContext(),
        "is_current_stream_capturing": _constant(False),
        "get_device_capability": _constant(target.capability),
        "get_device_name": _constant(target.device_name),
        "get_device_properties": lambda device=None: _properties(target),
        "mem_get_info": _constant((_MEMORY_BYTES, _MEMORY_BYTES)),
        "get_arch_list": _constant([f"sm_{target.arch}" if target.backend == "cuda" else str(target.arch)]),
        "can_device_access_peer": _constant(False),
        "nvtx": SimpleNamespace(
            range=DeviceContext,
            range_push=_constant(0),
            range_pop=_constant(0),
            mark=_constant(None),
            annotate=DeviceContext,
        ),
    }


def _accelerator() -> dict[str, Any]:
    return {
        "is_available": _constant(True),
        "current_accelerator": lambda *args, **kwargs: _device(),
        "device_count": _constant(1),
        "current_device_index": _constant(0),
        "current_device_idx": _constant(0),
        "set_device_index": _constant(None),
        "set_device_idx": _constant(None),
        "synchronize": _constant(None),
        "empty_cache": _constant(None),
        "current_stream": lambda device=None: DeviceContext(),
        "set_stream": _constant(None),
        "device_index": DeviceContext,
    }


def _generator(real: Any) -> Any:
    """A generator that draws on the CPU and shows the state of a CUDA one: 16 bytes, its seed and its offset."""

    class HostGenerator(real):  # type: ignore[misc]
        def __new__(cls, device: Any = None) -> Any:
            return real.__new__(cls, "cpu")

        def get_state(self) -> Any:
            import torch

            return torch.tensor([self.initial_seed() & (1 << 63) - 1, 0]).view(torch.uint8)

        def set_state(self, state: Any) -> Any:
            import torch

            if state.numel() != _STATE_BYTES:
                return super().set_state(state)
            self.manual_seed(int(state.cpu().view(torch.int64)[0]))
            return self

    return HostGenerator


def _eager(model: Any = None, **_: Any) -> Any:
    """`torch.compile` without compiling: what it generates for a CPU has nothing to do with the kernels of a GPU."""
    return (lambda function: function) if model is None else model


def _load_on_host(real: Any) -> Callable[..., Any]:
    def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
        named = str(map_location).startswith("cuda")
        return real(f, "cpu" if named else map_location, *args, **kwargs)

    return load


def _redirect_autocast(patches: Patches) -> None:
    from torch.amp.autocast_mode import autocast

    def replace(real: Any) -> Callable[..., None]:
        def init(self: Any, device_type: str = "cuda", *args: Any, **kwargs: Any) -> None:
            real(self, "cpu" if device_type == "cuda" else device_type, *args, **kwargs)

        return init

    patches.wrap(autocast, "__init__", replace)


def _stub_benchmarks(patches: Patches) -> None:
    import triton.testing as testing

    def do_bench(
        fn: Callable[[], object],
        *_: Any,
        quantiles: Sequence[float] | None = None,
        return_mode: str = "mean",
        **__: Any,
    ) -> Any:
        times = bench_once(fn, quantiles or [0.5])
        return times if quantiles or return_mode == "all" else times[0]

    patches.set(testing, "do_bench", do_bench)
    patches.set(testing, "do_bench_cudagraph", do_bench)
    patches.set(testing.Mark, "run", _run_smallest)


def _run_smallest(
    mark: Any,
    show_plots: bool = False,
    print_data: bool = False,
    save_path: str = "",
    return_df: bool = False,
    **kwargs: Any,
) -> None:
    """A `perf_report` benchmark, once per line at its first x value: the launches matter, not the times."""
    benches = mark.benchmarks if isinstance(mark.benchmarks, (list, tuple)) else [mark.benchmarks]
    for bench in benches:
        first = bench.x_vals[0]
        values = first if isinstance(first, (list, tuple)) else [first] * len(bench.x_names)
        for line in bench.line_vals:
            named = dict(zip(bench.x_names, values, strict=False))
            mark.fn(**named, **{bench.line_arg: line}, **bench.args, **kwargs)
