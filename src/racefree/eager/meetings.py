"""Which accesses of different program instances met on a byte in a run, one of them a write, with nothing between them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from racefree.eager.trace import Event, TooMuch, Trace

MAX_COMPARED = 1 << 20


@dataclass(frozen=True, slots=True)
class Meeting:
    """Two unordered events of different instances that touch the byte at `address`."""

    first: Event
    second: Event
    address: int


def meetings(trace: Trace, *, most: int = 8) -> tuple[Meeting, ...]:
    """Up to `most` meetings, one for each pair of source lines. Raises `TooMuch` when there is too much to compare."""
    found: dict[tuple[int, int], Meeting] = {}
    compared = 0
    for address, events in _shared(trace.events):
        for one, other in combinations(events, 2):
            compared += 1
            if compared > MAX_COMPARED:
                raise TooMuch(f"more than {MAX_COMPARED} pairs of accesses would have to be compared")
            first, second = sorted((one, other), key=lambda e: e.place)
            key = first.place, second.place
            if key not in found and _conflict(first, second, address) and not trace.ordered(first, second):
                found[key] = Meeting(first, second, address)
                if len(found) == most:
                    return tuple(found.values())
    return tuple(found.values())


def _conflict(one: Event, other: Event, address: int) -> bool:
    if one.program == other.program or not (one.kind.writes or other.kind.writes):
        return False
    if not (one.atomic and other.atomic):
        return True
    elements = _elements(one, address) | _elements(other, address)
    return len(elements) > 1


def _elements(event: Event, address: int) -> set[tuple[int, int]]:
    """The elements of the event that hold the byte: (address, size)."""
    inside = (event.addresses <= address) & (address < event.addresses + event.element_bytes)
    return {(start, event.element_bytes) for start in event.addresses[inside].tolist()}


def _shared(events: Sequence[Event]) -> Iterator[tuple[int, list[Event]]]:
    """(a byte address, the events that touch it), for one byte of each unit of memory that several instances meet on."""
    touching = [event for event in events if event.addresses.size]
    if not touching:
        return
    unit = _unit(touching)
    units, owners = _spread(touching, unit)
    order = np.argsort(units, kind="stable")
    units, owners = units[order], owners[order]
    programs = np.array([e.program for e in touching], dtype=np.int64)[owners]
    writes = np.array([e.kind.writes for e in touching], dtype=bool)[owners]
    starts = np.flatnonzero(np.r_[True, units[1:] != units[:-1]])
    several = np.minimum.reduceat(programs, starts) != np.maximum.reduceat(programs, starts)
    written = np.logical_or.reduceat(writes, starts)
    ends = np.r_[starts[1:], units.size]
    seen: set[bytes] = set()
    for start, end in zip(starts[several & written], ends[several & written], strict=True):
        together = np.unique(owners[start:end])
        met = [touching[i] for i in together.tolist()]
        # The same events meet on many units: one stands for all, but for atomics, whose elements may be the same on one unit
        # and merely overlap on another.
        key = together.tobytes()
        if key not in seen or sum(event.atomic for event in met) > 1:
            seen.add(key)
            yield int(units[start]) * unit, met


def _unit(events: Sequence[Event]) -> int:
    """The largest size in bytes, of 8 to 1, that every element consists of whole aligned units of."""
    unit = min(8, *(e.element_bytes for e in events))
    while any(e.element_bytes % unit or np.any(e.addresses % unit) for e in events):
        unit //= 2
    return unit


def _spread(events: Sequence[Event], unit: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """(the units touched, which event touches each)"""
    units, owners = [], []
    for index, event in enumerate(events):
        offsets = np.arange(event.element_bytes // unit, dtype=np.int64)
        spread = np.unique((event.addresses // unit)[:, None] + offsets)
        units.append(spread)
        owners.append(np.full(spread.size, index, dtype=np.int64))
    return np.concatenate(units), np.concatenate(owners)
