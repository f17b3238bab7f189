"""What the rules about synchronisation are given: a reading of the launch, and ways to ask about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from racefree.proof.memory_model import MemoryModel
from racefree.proof.symbolic.questions import Domain
from racefree.proof.symbolic.records import Reading, Record
from racefree.proof.symbolic.terms import Condition
from racefree.proof.symbolic.tickets import Ticket


@dataclass(frozen=True, slots=True)
class Setting:
    """`never` tells that conditions cannot hold together. `initial` is the one value every location of an atomic holds before
    the launch, or None. `may_meet` holds the pairs of accesses (by index) that share a tensor. Counters have to count up to
    `programs` without wrapping."""

    reading: Reading
    domain: Domain
    may_meet: set[tuple[int, int]]
    model: MemoryModel
    tickets: tuple[Ticket, ...]
    never: Callable[[Sequence[Condition]], bool]
    initial: Callable[[Record], int | None]
    programs: int
