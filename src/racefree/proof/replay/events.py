"""What happens while an instance runs, one access or barrier at a time, and how it may be run."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.access import Site
from racefree.errors import RacefreeError
from racefree.graph.program import Access
from racefree.proof.replay.lanes import Known, Lanes, Taint

Pid = tuple[int, int, int]


class Unreplayable(RacefreeError):
    """Plain evaluation needs a value that is not known here. Record the contents it names, or shrink the launch."""

    def __init__(self, reason: str, site: Site | None = None) -> None:
        self.reason = reason
        self.site = site
        super().__init__(reason)


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """One execution of an access, at the moment before it happens.

    `iterations` counts, from 0, the iterations of the enclosing loops, outermost first; `epoch` counts the barriers with
    both global bits this instance has passed; `order` the accesses and barriers before this one. `addresses` are byte
    addresses (meaningful where `active`). `operands` are the values it writes. `complete` is false when lanes with an
    unknown address or mask were left out (only where the caller allowed it).
    With tracking, element i of `depends` is the set of reads that the address, mask and written value of lane i were
    computed from, as bits of an integer, and lane i (row-major) of a reading access is read number `first_read + i`;
    `control` is the set of reads that decided the branches around this and the loops it had to wait for.
    """

    access: Access
    iterations: tuple[int, ...]
    epoch: int
    order: int
    addresses: npt.NDArray[np.int64]
    active: Known
    operands: tuple[Lanes, ...]
    complete: bool = True
    depends: Taint | None = None
    first_read: int | None = None
    control: int = 0

    @property
    def index(self) -> int:
        return self.access.index

    @property
    def site(self) -> Site:
        return self.access.site


@dataclass(frozen=True, slots=True)
class Fence:
    """A barrier is about to be passed; `orders_memory` when it has both global bits. `epoch` is the count before it."""

    orders_memory: bool
    iterations: tuple[int, ...]
    epoch: int
    order: int
    site: Site


Step = Event | Fence
Steps = Generator[Step, Lanes | None, None]


@dataclass(frozen=True, slots=True)
class Options:
    """How to run an instance.

    `track` follows data dependence. `cross_lanes` says whether an operation that mixes lanes makes every result depend
    on every operand (else on none: the reading under which nothing is ordered by it). Accesses in `may_be_unknown`
    tolerate unknown addresses and masks. `max_steps` bounds the accesses, barriers and iterations of one instance.
    With `reductions_synchronise`, a reduction or scan of a one-dimensional tile that spans several warps counts as a
    barrier: it goes through shared memory.
    """

    track: bool = False
    cross_lanes: bool = True
    may_be_unknown: frozenset[int] = frozenset()
    max_steps: int = 1_000_000
    reductions_synchronise: bool = False
