"""What a rung hands back: a proof with its scope and qualifiers, races with their witnesses, or why it passes.

`RungResult.status` is one of

* "proved": no race for every launch in `scope`, under `qualifiers`. `grid_fragile` then holds races of other grids.
* "races": `races` lists races of this very launch.
* "passed": this rung claims nothing; `refusal` says why (and `grid_fragile` may hold races that were seen on the way, of
  whatever grid).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from racefree.errors import Refusal
from racefree.graph.program import Access
from racefree.verdict import ProofScope

Pid = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Side:
    """One execution of one lane of an access. `iterations` count from 0, outermost loop first."""

    access: Access
    program: Pid
    lane: tuple[int, ...]
    iterations: tuple[int, ...]
    address_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Witness:
    """Two unordered executions that share a byte, at least one of them writing it.

    Within one program instance `first` runs first; between two instances `first` stands first in the source.
    `schedule` lists, in order, the atomics that led there, as (program, access index, value read), where that matters:
    plain replay needs these observations. `early` are the loads (by index) that find what was there before the launch.
    """

    first: Side
    second: Side
    reason: str
    schedule: tuple[tuple[Pid, int, int | None], ...] = ()
    early: frozenset[int] = frozenset()

    @property
    def race_type(self) -> str:
        """ "WAW" when both write (an atomic counts as a write), else by what `first` does."""
        if self.first.access.kind.writes and self.second.access.kind.writes:
            return "WAW"
        return "RAW" if self.first.access.kind.writes else "WAR"


@dataclass(frozen=True, slots=True)
class RungResult:
    """See the module docstring."""

    rung: str
    status: Literal["proved", "races", "passed"]
    scope: ProofScope | None = None
    qualifiers: tuple[str, ...] = ()
    races: tuple[Witness, ...] = ()
    refusal: Refusal | None = None
    grid_fragile: tuple[Witness, ...] = ()
