"""The stand-in for a compiled kernel: running it hands the launch over instead of running anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from racefree.triton.hostcompile import Compiled
from racefree.triton.targets import Target, gpu_target

Record = Callable[["HostKernel", tuple[int, int, int], Sequence[Any]], None]


class HostKernel:
    """Answers what Triton and scripts ask of a `CompiledKernel`; `run` is the launch, with the grid and arguments bound."""

    function = 0
    packed_metadata = ()
    module: Any = None
    kernel = b""
    n_regs = 32
    n_spills = 0
    n_max_threads = 1024

    def __init__(self, source: Any, target: Target, compiled: Compiled, record: Record) -> None:
        self.src = source
        self.target = target
        self.compiled = compiled
        self._record = record
        self.name: str = source.name
        self.hash = f"{id(self):x}"
        self.asm = {} if compiled.module is None else {"ttir": compiled.module.text}
        known = {"name": self.name, "shared": 1024, "target": gpu_target(target), "hash": self.hash, "tmem_size": 0}
        options = {} if compiled.options is None else dict(compiled.options.__dict__)
        self.metadata = SimpleNamespace(**(options | known))

    def _init_handles(self) -> None:
        return None

    def launch_metadata(self, *_: Any) -> None:
        return None

    def run(self, grid0: int, grid1: int, grid2: int, *rest: Any) -> None:
        """Triton's launch: stream, function, packed and launch metadata and two hooks, then the bound arguments."""
        self._record(self, (int(grid0), int(grid1), int(grid2)), rest[_BEFORE_ARGUMENTS:])

    def __getitem__(self, grid: Sequence[int]) -> Callable[..., None]:
        sizes = (*grid, 1, 1)
        extents = int(sizes[0]), int(sizes[1]), int(sizes[2])
        return lambda *args, stream=None: self._record(self, extents, args)


_BEFORE_ARGUMENTS = 6
