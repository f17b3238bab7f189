"""One program instance between two of its synchronising atomics: where it stands, what it holds, what it has touched."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

from racefree.errors import Refusal
from racefree.graph.program import Access, Statement
from racefree.proof.schedule.values import NONE, Clock, Reads, Val, join

UNSTAMPED = -1


class Entry(NamedTuple):
    """One execution of an access, kept for as long as it can meet another.

    `read` numbers it among the reads of its instance (-1 once a later round of a loop may have reused the number).
    `strict` is the release that publishes it for sure, `lenient` the first that may (counted per instance; -1: none yet).
    """

    footprint: int
    read: int
    strict: int
    lenient: int
    iterations: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Control:
    """What running at all depends on: the clock the conditions carry and the reads behind them."""

    acquired: Clock
    reads: Reads = NONE

    def under(self, condition: Val) -> Control:
        return Control(join(self.acquired, condition.acquired), self.reads | condition.all_reads)


@dataclass(slots=True)
class Frame:
    """A position in a body. `iteration` and `induction` belong to loops; `first_read` to data-dependent ones."""

    body: tuple[Statement, ...]
    control: Control
    owner: Statement | None = None
    part: int = 0
    at: int = 0
    iteration: int = 0
    induction: int = 0
    upper: int = 0
    step: int = 0
    first_read: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        place = id(self.owner), self.part, self.at
        loop = self.iteration, self.induction, self.upper, self.step, self.first_read
        return (*place, *loop, self.control.reads)


class Pending(NamedTuple):
    """The synchronising atomic an instance is about to do."""

    access: Access
    address: int
    operands: tuple[int | None, ...]


@dataclass(slots=True)
class Thread:
    """The whole state of one instance. Treated as immutable once it has been interned; `fork` makes a copy to run on.

    `everyone` is the clock all lanes have, `first` that of the one thread that does scalar atomics and stores, `lenient`
    the most that could be ordered before. `seen` is, per atomic cell, the oldest write the instance may still read.
    """

    frames: list[Frame]
    env: dict[int, Val]
    everyone: Clock
    first: Clock
    lenient: Clock
    seen: Clock = ()
    epoch: int = 0
    reads: int = 0
    settled: frozenset[Entry] = frozenset()
    open: tuple[Entry, ...] = ()
    unordered: frozenset[tuple[int, int]] = frozenset()
    pending: Pending | None = None
    stuck: Refusal | None = None
    steps: int = 0
    member: int = 0

    def fork(self) -> Thread:
        return replace(self, frames=[replace(f) for f in self.frames], env=dict(self.env))

    @property
    def done(self) -> bool:
        return self.pending is None

    def key(self) -> tuple[tuple[object, ...], tuple[Clock, ...]]:
        """What the future of the instance depends on, the clocks apart.

        Of two instances that differ in their clocks alone, the one with the lower clocks can do all the other can, and
        less is ordered before what it does.
        """
        names = sorted(self.env)
        values = [self.env[k].key for k in names]
        frames = tuple(f.key for f in self.frames)
        env = tuple((k, v[:-1]) for k, v in zip(names, values, strict=True))
        rest = (self.epoch, self.reads, self.settled, self.open, self.unordered, self.pending, self.stuck)
        clocks = [self.everyone, self.first, self.lenient, self.seen]
        clocks += [f.control.acquired for f in self.frames]
        clocks += [self.env[k].acquired for k in names]
        return (frames, env, rest), tuple(clocks)

    def fence(self) -> None:
        """All lanes meet: what any has done or acquired, all have."""
        self.everyone = self.first = join(self.everyone, self.first)
        epoch = self.epoch
        stamped = (
            e._replace(
                strict=epoch if e.strict == UNSTAMPED else e.strict,
                lenient=epoch if e.lenient == UNSTAMPED else e.lenient,
                read=UNSTAMPED,
            )
            for e in self.open
        )
        self.settled = self.settled | frozenset(stamped)
        self.open = ()

    def retire(self) -> None:
        """The instance has ended: only what it touched still matters."""
        zero = (0,) * len(self.everyone)
        self.frames.clear()
        self.env.clear()
        self.everyone = self.first = self.lenient = zero
        self.seen, self.reads, self.unordered = (), 0, frozenset()


def dominates(low: tuple[Clock, ...], high: tuple[Clock, ...]) -> bool:
    """True when every clock of `low` is at or below its counterpart (a missing component is 0)."""
    for a, b in zip(low, high, strict=True):
        if len(a) > len(b) and any(a[len(b) :]):
            return False
        if any(x > y for x, y in zip(a, b, strict=False)):
            return False
    return True
