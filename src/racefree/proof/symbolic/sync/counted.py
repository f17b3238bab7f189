"""Tickets of counters of which it is known where they begin, so that they only count up, and at one grid only so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod

from racefree.proof.symbolic.arithmetic import limits
from racefree.proof.symbolic.records import Record
from racefree.proof.symbolic.sync.setting import MOST_DRAWN, Setting
from racefree.proof.symbolic.tickets import Count, Drawn, Ticket, tickets
from racefree.proof.symbolic.variables import MAX_ROUNDS

DrawnFrom = Callable[[Sequence[Record]], tuple[Drawn, ...] | None]


def counted_tickets(setting: Setting, drawn: DrawnFrom | None = None) -> tuple[Ticket, ...]:
    """The tickets of counters of which it is known where they begin; at one grid also how far they get.

    `drawn` tells what the launch draws where; a reading of more than this launch has no use for it.
    """

    known: dict[int, tuple[Drawn, ...] | None] = {}

    def counting(series: Sequence[Record], step: int) -> Count | None:
        bits = min(8 * record.access.element_bytes for record in series)
        number = min(record.access.index for record in series)
        if drawn is not None and number not in known:
            known[number] = drawn(series)
        places = known.get(number)
        count = _count(series, step, bits, setting)
        if places is None or not all(_fits(place.start, step, place.times, bits) for place in places):
            return count
        return Count(None, None, places) if count is None else replace(count, drawn=places)

    found = tickets(setting.reading, setting.may_meet, counting)
    return found if any(ticket.count is not None for ticket in found) else ()


def _count(series: Sequence[Record], step: int, bits: int, setting: Setting) -> Count | None:
    pinned = setting.domain.pinned
    programs = prod(pinned.values()) if all(axis in pinned for axis in setting.domain.axes) else None
    each = _most_in_a_program(series)
    begins = {setting.held(record) for record in series}
    start = begins.pop()
    times = MOST_DRAWN if each is None else each * setting.programs
    if begins or start is None or not _fits(start, step, times, bits):
        return None
    return Count(start, None if each is None or programs is None else each * programs)


def _fits(start: int, step: int, times: int, bits: int) -> bool:
    low, high = limits(bits)
    return low <= start and start + step * times <= high


def _most_in_a_program(series: Sequence[Record]) -> int | None:
    """How often one program executes the lanes of some accesses, at most; None if the rounds of a loop are not bounded."""
    rounds = [loop.iteration.high for record in series for loop in record.loops]
    if any(high is None or high >= MAX_ROUNDS for high in rounds):
        return None
    return sum(
        prod(record.access.shape) * prod((loop.iteration.high or 0) + 1 for loop in record.loops) for record in series
    )
