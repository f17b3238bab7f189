"""A launch with its answer: which kernel, from where, with what, and what was found."""

from __future__ import annotations

from dataclasses import dataclass

from racefree.access import Site
from racefree.verdict import CompiledRaceRecord, RaceVerdict


@dataclass(frozen=True, slots=True)
class ArgumentSummary:
    """What a report says about one argument: `text` is short (`int32[8, 16] strides (16, 1)`, `1024`)."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Launch:
    """One analysed launch. `site` is the kernel's definition, `launch_site` the line that launched it."""

    kernel: str
    site: Site | None
    launch_site: Site | None
    grid: tuple[int, int, int] | None
    target: str
    arguments: tuple[ArgumentSummary, ...]
    verdict: RaceVerdict

    @property
    def races(self) -> tuple[CompiledRaceRecord, ...]:
        """The races of all configs, in config order."""
        return tuple(record for config in self.verdict.configs for record in config.races)

    @property
    def records(self) -> tuple[CompiledRaceRecord | RaceVerdict, ...]:
        """One record per race, then the verdict."""
        return (*self.races, self.verdict)
