"""Locks: a swap from free to held that succeeded, and a release that makes it free again, once per success.

Only those two change the location. Whoever releases has succeeded before, so at most one execution is between the two; the next
success acquires from the release before it, through however many other holders.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from racefree.access import Kind
from racefree.proof.symbolic.questions import Question, copier, in_grid
from racefree.proof.symbolic.records import Record, constant, in_loops_of
from racefree.proof.symbolic.sync.locations import acquires, releases
from racefree.proof.symbolic.sync.observing import Observation, observations
from racefree.proof.symbolic.sync.origins import Origins
from racefree.proof.symbolic.sync.publishing import published
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import (
    FALSE,
    TRUE,
    Condition,
    Relation,
    Sum,
    both,
    compare,
    conjunction,
    either,
    negate,
    number,
    unknown,
    variable,
)


@dataclass(frozen=True, slots=True)
class Lock:
    """`take` has succeeded where it found `free`; `give` makes it free again, in the same rounds of the loops around both."""

    take: Record
    give: Record
    free: int

    def held(self, record: Record, setting: Setting) -> Observation | None:
        """The success that `record` depends on and whose release comes later in the same rounds, behind a barrier."""
        if not in_loops_of(record, self.give) or published(record, self.give, setting, (1, 1)) == FALSE:
            return None
        return next(iter(taken(self, record, setting)), None)


def taken(lock: Lock, record: Record, setting: Setting) -> list[Observation]:
    """The attempts on the lock that `record` depends on, made in the same rounds of the loops around its release."""
    rounds = tuple(variable(loop.iteration) for loop in record.loops[: len(lock.give.loops)])
    return [
        seen
        for seen in observations(record, setting.reading)
        if seen.atomic is lock.take and seen.rounds[: len(rounds)] == rounds
    ]


def locks(setting: Setting, origins: Origins) -> tuple[Lock, ...]:
    out = []
    for take in setting.reading.records:
        if take.access.kind is not Kind.CAS or not acquires(take):
            continue
        free, held = constant(take, 0), constant(take, 1)
        changing = origins.changing(take)
        if free is None or held is None or free == held or changing is None or len(changing) != 2:
            continue
        if setting.initial(take) not in (None, free):
            continue  # nobody would ever get it
        give = next(record for record in changing if record is not take)
        lock = Lock(take, give, free)
        if releases(give) and _frees(give, free, held) and _paired(lock, setting):
            out.append(lock)
    return tuple(out)


def _frees(give: Record, free: int, held: int) -> bool:
    if give.access.kind is Kind.CAS:
        return (constant(give, 0), constant(give, 1)) == (held, free)
    return give.access.rmw == "exch" and constant(give, 0) == free


def _paired(lock: Lock, setting: Setting) -> bool:
    """Every release follows a success of its own, in the same place, and nothing is attempted between the two."""
    inner = lock.take.loops[len(lock.give.loops) :]
    if not in_loops_of(lock.take, lock.give):
        return False
    for seen in taken(lock, lock.give, setting):
        won = compare(Relation.EQ, seen.value, number(lock.free))
        sure = both(seen.executed, both(won, compare(Relation.EQ, seen.address, lock.give.address)))
        if not _always(sure, lock.give, setting, given=_holdable(lock, seen.value, setting)):
            continue
        if not inner:
            return seen.rounds == tuple(variable(loop.iteration) for loop in lock.give.loops)
        return len(inner) == 1 and _stops(lock, seen, setting)
    return False


def _stops(lock: Lock, seen: Observation, setting: Setting) -> bool:
    """The loop around the attempt ends with its first success."""
    (loop,) = lock.take.loops[len(lock.give.loops) :]
    waiting = next((w for w in setting.reading.awaits if w.number == loop.number), None)
    if waiting is None or seen.rounds[-1] != variable(waiting.exit):
        return False
    result = lock.take.access.result
    assert result is not None
    bits = 8 * lock.take.access.element_bytes
    rounds = tuple(variable(each.iteration) for each in lock.take.loops)
    found = unknown(f"v{result.index}", rounds, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    return setting.never([waiting.going, compare(Relation.EQ, found, number(lock.free))])


def _holdable(lock: Lock, value: Sum, setting: Setting) -> Condition:
    """What the location may hold: free, held, or what it held before the launch, if that is known."""
    initial = setting.initial(lock.take)
    held = constant(lock.take, 1)
    if initial is None or held is None:
        return TRUE
    known = (compare(Relation.EQ, value, number(k)) for k in (initial, held))
    return either(compare(Relation.EQ, value, number(lock.free)), either(*known))


def _always(condition: Condition, record: Record, setting: Setting, *, given: Condition) -> bool:
    """Whether the condition holds whenever the record happens."""
    names = copier(1)
    claims = [both(record.path, record.mask), given, negate(condition)]
    return setting.never([*in_grid(setting.domain, 1), *map(names.condition, claims)])


def unordered(question: Question, found: Sequence[Lock], setting: Setting) -> list[Condition]:
    """What the locks say if neither execution happens before the other: the two do not hold one lock."""
    if question.same_program:
        return []
    out = []
    for lock in found:
        one, two = lock.held(question.first, setting), lock.held(question.second, setting)
        if one is not None and two is not None:
            out.append(negate(_holds(one, two, lock.free)))
    return out


def _holds(one: Observation, two: Observation, value: int) -> Condition:
    """Both attempts found the lock free, at one place."""
    sides = ((one, copier(1)), (two, copier(2)))
    free = number(value)
    wins = [
        both(names.condition(seen.executed), compare(Relation.EQ, names.sum(seen.value), free)) for seen, names in sides
    ]
    places = [names.sum(seen.address) for seen, names in sides]
    return conjunction((*wins, compare(Relation.EQ, places[0], places[1])))
