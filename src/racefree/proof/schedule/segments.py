"""What one stretch of one instance's execution hands over: what it did, what its atomic saw, and what that left behind."""

from __future__ import annotations

from dataclasses import dataclass, field

from racefree.access import Site
from racefree.proof.schedule.thread import Entry, Thread
from racefree.proof.schedule.values import Clock


@dataclass(frozen=True, slots=True)
class Logged:
    """A new entry, with the clocks that order it after others: for sure, and at most."""

    entry: Entry
    strict: Clock
    lenient: Clock


@dataclass(slots=True)
class Segment:
    """What one stretch of execution did. `stores` are plain or tile-wide writes: (addresses, bytes, value if one)."""

    thread: Thread
    logged: list[Logged] = field(default_factory=list)
    stores: list[tuple[tuple[int, ...], int, int | None]] = field(default_factory=list)
    hazard: Site | None = None
    spun: bool = False


@dataclass(frozen=True, slots=True)
class Observed:
    """What a synchronising atomic reads: write number `position` of its cell, with the clocks a release left there."""

    cell: int
    position: int
    value: int | None
    strict: Clock
    lenient: Clock
    seen: Clock
    newest: int


@dataclass(frozen=True, slots=True)
class Left:
    """What an atomic leaves: a new write, or (`fresh` false) the same value with more that may be ordered before it."""

    fresh: bool
    value: int | None
    strict: Clock
    lenient: Clock
    seen: Clock
