"""A number that says whose turn it is: whoever finds its own number there does its work and moves the number on by one step.

No two executions have the same number at one location, and each moves it only after it has found it. So the location counts
through the numbers one by one, and whoever finds its own acquires from all whose turn came before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    """`seen` is the look that `move` depends on; it found the number that `move` adds `step` to."""

    seen: Observation
    move: Record
    step: int

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
            step = _step(seen, move, setting)
            if step is None or setting.wraps(move, step):
                continue
            if _one_each(seen, move, setting) and _starts(seen, move, setting):
                out.append(Baton(seen, move, step))
                break
    return tuple(out)


def _step(seen: Observation, move: Record, setting: Setting) -> int | None:
    """By how much the number goes on from what was found, if it does so always."""
    names = copier(1)
    rounds = tuple(variable(loop.iteration) for loop in move.loops)
    if seen.rounds[: len(rounds)] != rounds:
        return None
    happens = [names.condition(both(move.path, move.mask)), *in_grid(setting.domain, 1)]
    here = both(seen.executed, compare(Relation.EQ, seen.address, move.address))
    if not setting.never([*happens, names.condition(negate(here))]):
        return None
    written = move.written[0]
    if move.access.kind is Kind.RMW and move.access.rmw == "add":
        return constant(move, 0) or None
    if move.access.kind is Kind.RMW and move.access.rmw == "exch" and isinstance(written, Sum):
        for step in (1, -1):
            follows = compare(Relation.EQ, written, add((seen.value, number(step))))
            if setting.never([*happens, names.condition(negate(follows))]):
                return step
    return None


def _one_each(seen: Observation, move: Record, setting: Setting) -> bool:
    """No two executions of `move` have found one number at one location."""
    one, other = copier(1), copier(2)
    claims = [names.condition(both(move.path, move.mask)) for names in (one, other)]
    claims += [*in_grid(setting.domain, 1), *in_grid(setting.domain, 2)]
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
    initial, names = setting.initial(seen.atomic), copier(1)
    if initial is None:
        return True
    claims = [both(move.path, move.mask), compare(Relation.EQ, seen.value, number(initial))]
    return not setting.never([*in_grid(setting.domain, 1), *map(names.condition, claims)])


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
                if theirs.atomic is baton.seen.atomic:
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
    ahead = scale(subtract(second.sum(theirs.value), first.sum(mine.value)), baton.step)
    return either(negate(there), compare(Relation.LE, ahead, number(0)))
