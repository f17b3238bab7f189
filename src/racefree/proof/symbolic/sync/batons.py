"""A number that says whose turn it is: whoever finds its own number there does its work and moves the number on by one step.

No two executions have the same number at one location, and each moves it only after it has found it. So the location counts
through the numbers one by one, and whoever finds its own acquires from all whose turn came before. Who has the last number may
leave any other: where the location has counted from before the first number, all others have had their turns by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from racefree.access import Kind
from racefree.proof.symbolic.questions import Question, copier, in_grid, own
from racefree.proof.symbolic.records import Record, constant, in_loops_of
from racefree.proof.symbolic.sync.locations import acquires, changes_nothing, releases
from racefree.proof.symbolic.sync.observing import Observation, observations
from racefree.proof.symbolic.sync.origins import Origins, same_program
from racefree.proof.symbolic.sync.publishing import published
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import (
    FALSE,
    ONE,
    Condition,
    Relation,
    Sum,
    add,
    both,
    compare,
    conjunction,
    either,
    negate,
    number,
    scale,
    subtract,
    variable,
)
from racefree.proof.symbolic.tickets import distinctness


@dataclass(frozen=True, slots=True)
class Baton:
    """`seen` is the look that `move` depends on; it found the number that `move` adds `step` to. `ends`: the last may not.

    `looks` are the atomics (by index) that see the same number and acquire from who has moved it.
    """

    seen: Observation
    move: Record
    step: int
    ends: bool
    looks: frozenset[int] = frozenset()

    def turn(self, record: Record, setting: Setting) -> Observation | None:
        """The look of the same rounds that `record` depends on."""
        if not in_loops_of(record, self.move):
            return None
        return next((s for s in observations(record, setting.reading) if s == self.seen), None)


def batons(setting: Setting, origins: Origins) -> tuple[Baton, ...]:
    out = []
    for move in setting.reading.records:
        if not releases(move) or origins.changing(move) != (move,):
            continue
        for seen in observations(move, setting.reading):
            if not acquires(seen.atomic) or not changes_nothing(seen.atomic):
                continue
            found = _baton(seen, move, setting)
            if found is None or setting.wraps(move, found.step):
                continue
            if _one_each(seen, move, setting) and _starts(seen, move, setting):
                out.append(replace(found, looks=_looks(seen, move, setting, origins)))
                break
    return tuple(out)


def _looks(seen: Observation, move: Record, setting: Setting, origins: Origins) -> frozenset[int]:
    looking = (r for r in setting.reading.records if acquires(r) and changes_nothing(r))
    others = (r for r in looking if origins.changing(r) == (move,))
    return frozenset(r.access.index for r in (seen.atomic, *others))


def _baton(seen: Observation, move: Record, setting: Setting) -> Baton | None:
    """By how much the number goes on from what was found, if it does so always, or unless nobody is left to find it."""
    names = copier(1)
    rounds = tuple(variable(loop.iteration) for loop in move.loops)
    if seen.rounds[: len(rounds)] != rounds:
        return None
    happens = _happens(move, 1, setting)
    here = both(seen.executed, compare(Relation.EQ, seen.address, move.address))
    if not setting.never([*happens, names.condition(negate(here))]):
        return None
    written = move.written[0]
    if move.access.kind is Kind.RMW and move.access.rmw == "add":
        step = constant(move, 0)
        return Baton(seen, move, step, ends=False) if step else None
    if move.access.kind is Kind.RMW and move.access.rmw == "exch" and isinstance(written, Sum):
        for step in (1, -1):
            other = names.condition(negate(compare(Relation.EQ, written, add((seen.value, number(step))))))
            if setting.never([*happens, other]):
                return Baton(seen, move, step, ends=False)
            if _only_the_last(seen, move, other, step, setting):
                return Baton(seen, move, step, ends=True)
    return None


def _happens(move: Record, copy: int, setting: Setting) -> list[Condition]:
    return [copier(copy).condition(both(move.path, move.mask)), *in_grid(setting.domain, copy)]


def _only_the_last(seen: Observation, move: Record, other: Condition, step: int, setting: Setting) -> bool:
    """Whether what holds for copy 1 holds for no execution but that of the last number of a location, and none has a number
    before the one that was there before the launch."""
    initial, mine, theirs = setting.initial(seen.atomic), copier(1), copier(2)
    if initial is None:
        return False
    place = compare(Relation.EQ, mine.sum(move.address), theirs.sum(move.address))
    behind = _ahead(mine.sum(seen.value), theirs.sum(seen.value), step)
    if not setting.never([*_happens(move, 1, setting), *_happens(move, 2, setting), other, place, behind]):
        return False
    return setting.never([*_happens(move, 1, setting), _ahead(mine.sum(seen.value), number(initial), step)])


def _ahead(first: Sum, second: Sum, step: int) -> Condition:
    """The second number comes after the first."""
    return compare(Relation.LE, ONE, scale(subtract(second, first), step))


def _one_each(seen: Observation, move: Record, setting: Setting) -> bool:
    """No two executions of `move` have found one number at one location."""
    one, other = copier(1), copier(2)
    claims = [*_happens(move, 1, setting), *_happens(move, 2, setting)]
    claims += [compare(Relation.EQ, one.sum(t), other.sum(t)) for t in (seen.value, move.address)]
    same = same_program(setting, 1, 2)
    rounds = conjunction(compare(Relation.EQ, own(loop.iteration, 1), own(loop.iteration, 2)) for loop in move.loops)
    apart = [*claims, negate(same)]
    if not setting.never([*apart, *distinctness(setting.tickets, apart, setting.domain)]):
        return False
    again = [*claims, same, negate(rounds)]
    return negate(rounds) == FALSE or setting.never([*again, *distinctness(setting.tickets, again, setting.domain)])


def _starts(seen: Observation, move: Record, setting: Setting) -> bool:
    """Whether somebody's number is there before the launch, if that is known: else nobody would ever have its turn."""
    initial = setting.initial(seen.atomic)
    if initial is None:
        return True
    first = copier(1).condition(compare(Relation.EQ, seen.value, number(initial)))
    return not setting.never([*_happens(move, 1, setting), first])


def unordered(question: Question, found: Sequence[Baton], setting: Setting) -> list[Condition]:
    """What the numbers say if neither execution happens before the other."""
    if question.same_program:
        return []
    out = []
    for baton in found:
        for before, a, after, b in ((question.first, 1, question.second, 2), (question.second, 2, question.first, 1)):
            mine = baton.turn(before, setting)
            if mine is None or published(before, baton.move, setting, (a, a)) == FALSE:
                continue
            for theirs in observations(after, setting.reading):
                if theirs.atomic.access.index in baton.looks:
                    out.append(_not_later(baton, mine, a, theirs, b))
    return out


def _not_later(baton: Baton, mine: Observation, a: int, theirs: Observation, b: int) -> Condition:
    """The look of copy `b` has not found a number behind that of copy `a`."""
    first, second = copier(a), copier(b)
    there = conjunction(
        (
            first.condition(both(baton.move.path, baton.move.mask)),
            second.condition(theirs.executed),
            compare(Relation.EQ, first.sum(mine.address), second.sum(theirs.address)),
        )
    )
    return either(negate(there), negate(_ahead(first.sum(mine.value), second.sum(theirs.value), baton.step)))
