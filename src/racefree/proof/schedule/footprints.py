"""The bytes one execution of an access touches, lane by lane, and whether two executions meet on a byte."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.graph.program import Access

I64 = npt.NDArray[np.int64]
Sure = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Footprint:
    """`addresses[i]` is the byte address of active lane `lanes[i]` (row-major); `sure[i]` unless its mask is unknown.

    Sorted by address. Interned: two executions with equal footprints share the object, and `number` tells it apart.
    """

    number: int
    access: Access
    addresses: I64
    lanes: I64
    sure: Sure

    @property
    def writes(self) -> bool:
        return self.access.kind.writes

    @property
    def broadly_atomic(self) -> bool:
        """Atomic with respect to other program instances."""
        return self.access.kind.atomic and self.access.scope is not None and self.access.scope.spans_programs


@dataclass(frozen=True, slots=True)
class Meeting:
    """Positions (not lanes) in two footprints that share a byte; `certain` when both lanes are surely active."""

    first: int
    second: int
    certain: bool


class Footprints:
    """Interns footprints and remembers which pairs meet."""

    def __init__(self) -> None:
        self.all: list[Footprint] = []
        self._numbers: dict[tuple[int, bytes, bytes, bytes], Footprint] = {}
        self._meetings: dict[tuple[int, int], Meeting | None] = {}

    def intern(self, access: Access, addresses: I64, lanes: I64, sure: Sure) -> Footprint:
        order = np.argsort(addresses, kind="stable")
        addresses, lanes, sure = addresses[order], lanes[order], sure[order]
        key = (access.index, addresses.tobytes(), lanes.tobytes(), sure.tobytes())
        found = self._numbers.get(key)
        if found is None:
            found = Footprint(len(self.all), access, addresses, lanes, sure)
            self.all.append(found)
            self._numbers[key] = found
        return found

    def between_programs(self, a: int, b: int) -> Meeting | None:
        """Where executions of two program instances conflict: a certain place if there is one, and the last of them.

        The one thread that releases and acquires for all has the first elements of a tile, and may do those in order.
        """
        key = (a, b)
        if key not in self._meetings:
            self._meetings[key] = _conflict(self.all[a], self.all[b])
        return self._meetings[key]


def _conflict(a: Footprint, b: Footprint) -> Meeting | None:
    if not (a.writes or b.writes):
        return None
    low, high = windows(a, b)
    exempt = a.broadly_atomic and b.broadly_atomic and a.access.element_bytes == b.access.element_bytes
    found: Meeting | None = None
    for j in np.nonzero(high > low)[0][::-1]:
        for i in reversed(range(int(low[j]), int(high[j]))):
            if exempt and a.addresses[i] == b.addresses[j]:
                continue
            certain = bool(a.sure[i] and b.sure[j])
            if certain:
                return Meeting(i, int(j), True)
            found = found or Meeting(i, int(j), False)
    return found


def windows(a: Footprint, b: Footprint) -> tuple[I64, I64]:
    """For each position of `b`, the half-open range of positions of `a` that share a byte with it."""
    if a.addresses.size == 0 or b.addresses.size == 0:
        none = np.zeros(b.addresses.shape, dtype=np.int64)
        return none, none
    low = np.searchsorted(a.addresses, b.addresses - a.access.element_bytes, side="right")
    high = np.searchsorted(a.addresses, b.addresses + b.access.element_bytes, side="left")
    return low.astype(np.int64), high.astype(np.int64)


@dataclass(frozen=True, slots=True)
class Inside:
    """Where two executions of one program instance conflict: on the same lane, and on different lanes."""

    same: tuple[int, int] | None
    crossed: tuple[int, int] | None
    same_certain: bool = True
    crossed_certain: bool = True


def inside(a: Footprint, b: Footprint, *, one_execution: bool = False) -> Inside:
    """Conflicts inside one program instance, lanes told apart. `one_execution`: `a` is `b`, so a lane is no pair."""
    exempt = a.access.kind.atomic and b.access.kind.atomic and _same_size(a, b)
    if not (a.writes or b.writes) or (exempt and _whole_or_apart(a, b)):
        return Inside(None, None)
    low, high = windows(a, b)
    same: tuple[int, int] | None = None
    crossed: tuple[int, int] | None = None
    same_certain = crossed_certain = True
    for j in np.nonzero(high > low)[0]:
        start, stop = int(low[j]), int(high[j])
        for i in _ends(start, stop) if exempt else range(start, min(stop, start + 3)):
            if exempt and a.addresses[i] == b.addresses[j]:
                continue
            certain = bool(a.sure[i] and b.sure[j])
            if a.lanes[i] == b.lanes[j]:
                if not one_execution and (same is None or (certain and not same_certain)):
                    same, same_certain = (i, int(j)), certain
            elif crossed is None or (certain and not crossed_certain):
                crossed, crossed_certain = (i, int(j)), certain
        if same is not None and crossed is not None and same_certain and crossed_certain:
            break
    return Inside(same, crossed, same_certain, crossed_certain)


def _whole_or_apart(a: Footprint, b: Footprint) -> bool:
    """Whether elements of one size meet on all their bytes or on none."""
    return len(np.unique(np.concatenate([a.addresses, b.addresses]) % a.access.element_bytes)) <= 1


def _ends(low: int, high: int) -> Iterator[int]:
    """The first and the last positions of a range: where addresses rise, those of its middle are all equal if any are."""
    yield from range(low, min(high, low + 3))
    yield from range(max(high - 3, low + 3), high)


def _same_size(a: Footprint, b: Footprint) -> bool:
    return a.access.element_bytes == b.access.element_bytes
