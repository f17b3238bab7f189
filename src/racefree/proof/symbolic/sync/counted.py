"""Tickets of counters of which it is known where they begin, so that they only count up, and at one grid only so far."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from racefree.proof.symbolic.arithmetic import limits
from racefree.proof.symbolic.records import Record
from racefree.proof.symbolic.sync.setting import MOST_DRAWN, Setting
from racefree.proof.symbolic.tickets import Count, Ticket, tickets
from racefree.proof.symbolic.variables import MAX_ROUNDS


def counted_tickets(setting: Setting) -> tuple[Ticket, ...]:
    """The tickets of counters of which it is known where they begin; at one grid also how far they get."""
    pinned = setting.domain.pinned
    programs = prod(pinned.values()) if all(axis in pinned for axis in setting.domain.axes) else None

    def counting(series: Sequence[Record], step: int) -> Count | None:
        each = _most_in_a_program(series)
        times = MOST_DRAWN if each is None else each * setting.programs
        begins = {setting.held(record) for record in series}
        start = begins.pop()
        bits = min(8 * record.access.element_bytes for record in series)
        if begins or start is None or not limits(bits)[0] <= start <= start + step * times <= limits(bits)[1]:
            return None
        return Count(start, None if each is None or programs is None else each * programs)

    found = tickets(setting.reading, setting.may_meet, counting)
    return found if any(ticket.count is not None for ticket in found) else ()


def _most_in_a_program(series: Sequence[Record]) -> int | None:
    """How often one program executes the lanes of some accesses, at most; None if the rounds of a loop are not bounded."""
    rounds = [loop.iteration.high for record in series for loop in record.loops]
    if any(high is None or high >= MAX_ROUNDS for high in rounds):
        return None
    return sum(
        prod(record.access.shape) * prod((loop.iteration.high or 0) + 1 for loop in record.loops) for record in series
    )
