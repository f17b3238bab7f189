"""One taken launch as plain data: which kernel, from which line, and each config it would have run with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from racefree.access import Site
from racefree.errors import Refusal
from racefree.graph.launch import LaunchFacts
from racefree.ttir.generic import GenericModule


@dataclass(frozen=True, slots=True)
class CapturedConfig:
    """One config of a launch: the compiled module and what the launch gave it, or the reason there is none.

    `config` holds the autotuner's keyword arguments and `num_warps`; it is empty for a launch without an autotuner.
    """

    facts: LaunchFacts | None
    module: GenericModule | None
    config: dict[str, Any] = field(default_factory=dict)
    failure: Refusal | None = None


@dataclass(frozen=True, slots=True)
class CapturedLaunch:
    """One launch. `site` is where the kernel is defined, `launch_site` the line of the user's code that launched it."""

    kernel: str
    site: Site
    launch_site: Site
    configs: tuple[CapturedConfig, ...]
    notes: tuple[str, ...] = ()
