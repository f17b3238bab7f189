"""What one run of program instances touched, and which of it came before which by the atomics that were met."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from racefree.access import Kind

Pid = tuple[int, int, int]
Place = tuple[str, int, str]
"""(file, line, function)"""

MAX_ELEMENTS = 1 << 24
MAX_CLOCK_CELLS = 1 << 25


class TooMuch(Exception):
    """The run touches more than is kept."""


@dataclass(frozen=True, slots=True)
class Event:
    """One access of one program instance: the addresses of its active lanes, and which lanes those are.

    `program` and `place` are indices into the trace. `period` counts the atomics that the instance has met. `apart` is true
    for an atomic whose scope is one program instance only: to others it is a plain access.
    """

    program: int
    period: int
    kind: Kind
    apart: bool
    element_bytes: int
    place: int
    addresses: npt.NDArray[np.int64]
    lanes: npt.NDArray[np.int64]

    @property
    def atomic(self) -> bool:
        """True when other instances see it as one step."""
        return self.kind.atomic and not self.apart


@dataclass(slots=True)
class Trace:
    """Filled access by access while the instances run, one at a time but in any order.

    Order is taken generously: an atomic that releases publishes all that its instance has done, one that acquires orders all
    that follows, and nothing ever breaks a release sequence. What is unordered here is unordered under every memory model.
    """

    programs: tuple[Pid, ...]
    events: list[Event] = field(default_factory=list)
    places: dict[Place, int] = field(default_factory=dict)
    _elements: int = 0
    _clocks: dict[tuple[int, int], npt.NDArray[np.int32]] = field(default_factory=dict)
    _now: dict[int, npt.NDArray[np.int32]] = field(default_factory=dict)
    _published: dict[int, npt.NDArray[np.int32]] = field(default_factory=dict)

    def place(self, index: int) -> Place:
        return next(place for place, known in self.places.items() if known == index)

    def keeping(self, events: list[Event]) -> Trace:
        """The same run as if nothing else had been written down."""
        return Trace(self.programs, events, self.places, _clocks=self._clocks)

    def access(
        self,
        program: int,
        kind: Kind,
        place: Place,
        element_bytes: int,
        addresses: npt.NDArray[np.int64],
        lanes: npt.NDArray[np.int64],
        *,
        apart: bool = False,
    ) -> None:
        """A load, a store, or an atomic (between `before_atomic` and `after_atomic`)."""
        self._elements += addresses.size
        if self._elements > MAX_ELEMENTS:
            raise TooMuch(f"the run touches more than {MAX_ELEMENTS} elements")
        known = self.places.setdefault(place, len(self.places))
        period = int(self._clock(program)[program])
        self.events.append(Event(program, period, kind, apart, element_bytes, known, addresses, lanes))

    def before_atomic(self, program: int, addresses: npt.NDArray[np.int64], *, acquires: bool) -> None:
        """A period begins, after everything that was published at these addresses if the atomic acquires."""
        clock = self._clock(program)
        if acquires:
            for address in addresses.tolist():
                published = self._published.get(address)
                if published is not None:
                    np.maximum(clock, published, out=clock)
        self._next(program)

    def after_atomic(self, program: int, addresses: npt.NDArray[np.int64], *, releases: bool) -> None:
        """A period ends, and is published at these addresses if the atomic releases."""
        clock = self._clock(program)
        if releases:
            for address in addresses.tolist():
                published = self._published.get(address)
                self._published[address] = clock.copy() if published is None else np.maximum(published, clock)
        self._next(program)

    def ordered(self, first: Event, second: Event) -> bool:
        """True when one of two events of different instances is known to have come before the other."""
        return self._before(first, second) or self._before(second, first)

    def _before(self, first: Event, second: Event) -> bool:
        clock = self._clocks.get((second.program, second.period))
        return clock is not None and int(clock[first.program]) >= first.period

    def _clock(self, program: int) -> npt.NDArray[np.int32]:
        clock = self._now.get(program)
        if clock is None:
            clock = self._now[program] = np.full(len(self.programs), -1, dtype=np.int32)
            clock[program] = 0
        return clock

    def _next(self, program: int) -> None:
        clock = self._clock(program)
        clock[program] += 1
        if len(self._clocks) * len(self.programs) > MAX_CLOCK_CELLS:
            raise TooMuch("the run meets more atomics than are kept")
        self._clocks[program, int(clock[program])] = clock.copy()
