"""A launch with its answer: which kernel, from where, with what, and what was found."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from racefree.access import Site
from racefree.verdict import CompiledRaceRecord, RaceVerdict

Pictures = Literal["nothing", "races", "all"]
"""Which launches get pictures: none, those that race (small ones, to be kept beside other data), or all."""


@dataclass(frozen=True, slots=True)
class ArgumentSummary:
    """What a report says about one argument: `text` is short (`int32[8, 16] strides (16, 1)`, `1024`)."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Touched:
    """The elements of a tensor that one program instance writes and reads, as half-open runs."""

    program: tuple[int, int, int]
    written: tuple[tuple[int, int], ...]
    read: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class TensorMap:
    """Who writes which element of a tensor, counted from its data pointer to the end of its storage.

    `owners` are runs (start, end, program), where a program is numbered x + grid.x * (y + grid.y * z): the lowest number that
    writes there; `contested` are the runs that several programs write.
    `programs` are those that a race names. A map is `complete` when every program instance was evaluated.
    """

    tensor: str
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    elements: int
    owners: tuple[tuple[int, int, int], ...]
    programs: tuple[Touched, ...] = ()
    complete: bool = True
    contested: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Launch:
    """One analysed launch. `site` is the kernel's definition, `launch_site` the line that launched it.

    `maps` are pictures of tensors, taken only where a report that draws them was asked for.
    """

    kernel: str
    site: Site | None
    launch_site: Site | None
    grid: tuple[int, int, int] | None
    target: str
    arguments: tuple[ArgumentSummary, ...]
    verdict: RaceVerdict
    maps: tuple[TensorMap, ...] = ()

    @property
    def races(self) -> tuple[CompiledRaceRecord, ...]:
        """The races of all configs, in config order."""
        return tuple(record for config in self.verdict.configs for record in config.races)

    @property
    def records(self) -> tuple[CompiledRaceRecord | RaceVerdict, ...]:
        """One record per race, then the verdict."""
        return (*self.races, self.verdict)

    def _repr_html_(self) -> str:
        """What a notebook shows for the launch."""
        shown: str = import_module("racefree.notebook").of_launch(self)
        return shown
