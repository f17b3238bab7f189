"""What the rules about synchronisation are given: a reading of the launch, and ways to ask about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from racefree.proof.memory_model import MemoryModel
from racefree.proof.symbolic.arithmetic import limits
from racefree.proof.symbolic.questions import Domain
from racefree.proof.symbolic.records import Reading, Record
from racefree.proof.symbolic.terms import Condition
from racefree.proof.symbolic.tickets import Ticket

MOST_DRAWN = 1 << 24
"""A launch is not taken to draw from one counter more often; a proof that needs this also assumes that nothing overflows."""


@dataclass(frozen=True, slots=True)
class Setting:
    """`never` tells that conditions cannot hold together. `initial` is the one value every location of an atomic holds before
    the launch, or None; `held` is the same for the launch at hand, also where a proof is for more than it. `may_meet` holds the
    pairs of accesses (by index) that share a tensor. Counters have to count up to `programs` without wrapping."""

    reading: Reading
    domain: Domain
    may_meet: set[tuple[int, int]]
    model: MemoryModel
    tickets: tuple[Ticket, ...]
    never: Callable[[Sequence[Condition]], bool]
    initial: Callable[[Record], int | None]
    held: Callable[[Record], int | None]
    programs: int

    def wraps(self, counting: Record, step: int) -> bool:
        """Whether the launch is known to start so near the end of a counter's integers that it may count past it."""
        held, times = self.held(counting), MOST_DRAWN if counting.loops else self.programs
        low, high = limits(8 * counting.access.element_bytes)
        return held is not None and not low <= held + step * times <= high
