"""A number that says whose turn it is: whoever finds its own number there does its work and moves the number on by one step.

No two executions have the same number at one location, and each moves it only after it has found it. So the location counts
through the numbers one by one, and whoever finds its own acquires from all whose turn came before. Who has the last number may
leave any other: where the location has counted from before the first number, all others have had their turns by then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations_with_replacement

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
    TRUE,
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
    """`seen` is the look that each of `moves` depends on, and found the number they add `step` to. `ends`: the last may not.

    `looks` are the atomics (by index) that see the same number and acquire from who has moved it.
    """

    seen: Observation
    moves: tuple[Record, ...]
    step: int
    ends: bool
    looks: frozenset[int] = frozenset()

    def turn(self, record: Record, move: Record, setting: Setting) -> Observation | None:
        """The look of the same rounds that `record` depends on."""
        if not in_loops_of(record, move):
            return None
        return next((s for s in observations(record, setting.reading) if s == self.seen), None)


def batons(setting: Setting, origins: Origins) -> tuple[Baton, ...]:
    out = []
    for moves in dict.fromkeys(origins.changing(r) for r in setting.reading.records if releases(r)):
        if not moves or not all(releases(move) and origins.changing(move) == moves for move in moves):
            continue
        for seen in observations(moves[0], setting.reading):
            if not acquires(seen.atomic) or not changes_nothing(seen.atomic):
                continue
            found = _baton(seen, moves, setting)
            if found is None or any(setting.wraps(move, found.step) for move in moves):
                continue
            if _one_each(seen, moves, setting) and _starts(seen, moves, setting):
                out.append(replace(found, looks=_looks(seen, moves, setting, origins)))
                break
    return tuple(out)


def _looks(seen: Observation, moves: tuple[Record, ...], setting: Setting, origins: Origins) -> frozenset[int]:
    looking = (r for r in setting.reading.records if acquires(r) and changes_nothing(r))
    others = (r for r in looking if origins.changing(r) == moves)
    return frozenset(r.access.index for r in (seen.atomic, *others))


def _baton(seen: Observation, moves: tuple[Record, ...], setting: Setting) -> Baton | None:
    """By how much the number goes on from what was found, if it does so always, or unless nobody is left to find it."""
    if not all(_follows(seen, move, setting) for move in moves):
        return None
    left = [_left(seen, move, setting) for move in moves]
    added = {constant(move, 0) or 0 for move in moves if move.access.rmw == "add"}
    for step in sorted(added) or (1, -1):
        strays = [_stray(seen, move, after, step, setting) for move, after in zip(moves, left, strict=True)]
        possible = [stray for stray in strays if not setting.never(stray)]
        if step and (not possible or _only_the_last(seen, moves, possible, step, setting)):
            return Baton(seen, moves, step, ends=bool(possible))
    return None


def _follows(seen: Observation, move: Record, setting: Setting) -> bool:
    """Whether a move comes after a look of the same rounds, at the same location."""
    rounds = tuple(variable(loop.iteration) for loop in move.loops)
    here = both(seen.executed, compare(Relation.EQ, seen.address, move.address))
    mine = seen in observations(move, setting.reading) and seen.rounds[: len(rounds)] == rounds
    return mine and setting.never([*_happens(move, 1, setting), copier(1).condition(negate(here))])


def _left(seen: Observation, move: Record, setting: Setting) -> Sum | None:
    """The number that a move leaves, if nobody has moved it since the look."""
    written = move.written
    if move.access.kind is Kind.CAS and isinstance(written[0], Sum) and isinstance(written[1], Sum):
        misses = copier(1).condition(compare(Relation.NE, written[0], seen.value))
        return written[1] if setting.never([*_happens(move, 1, setting), misses]) else None
    if move.access.kind is not Kind.RMW or not isinstance(written[0], Sum):
        return None
    added = add((seen.value, written[0])) if move.access.rmw == "add" else None
    return written[0] if move.access.rmw == "exch" else added


def _happens(move: Record, copy: int, setting: Setting) -> list[Condition]:
    return [copier(copy).condition(both(move.path, move.mask)), *in_grid(setting.domain, copy)]


def _stray(seen: Observation, move: Record, left: Sum | None, step: int, setting: Setting) -> list[Condition]:
    """When a move, of copy 1, leaves another number than the next."""
    other = TRUE if left is None else negate(compare(Relation.EQ, left, add((seen.value, number(step)))))
    return [*_happens(move, 1, setting), copier(1).condition(other)]


def _only_the_last(
    seen: Observation, moves: tuple[Record, ...], strays: Sequence[list[Condition]], step: int, setting: Setting
) -> bool:
    """Whether only the last number of a location strays, and none stands before what was there before the launch."""
    initial, mine, theirs = setting.initial(seen.atomic), copier(1), copier(2)
    if initial is None:
        return False
    place = compare(Relation.EQ, mine.sum(seen.address), theirs.sum(seen.address))
    behind = _ahead(mine.sum(seen.value), theirs.sum(seen.value), step)
    early = _ahead(mine.sum(seen.value), number(initial), step)
    return all(
        setting.never([*stray, *_happens(move, 2, setting), place, behind]) for stray in strays for move in moves
    ) and all(setting.never([*_happens(move, 1, setting), early]) for move in moves)


def _ahead(first: Sum, second: Sum, step: int) -> Condition:
    """The second number comes after the first."""
    return compare(Relation.LE, ONE, scale(subtract(second, first), step))


def _one_each(seen: Observation, moves: tuple[Record, ...], setting: Setting) -> bool:
    """No two executions of the moves have found one number at one location."""
    return all(_apart(seen, one, other, setting) for one, other in combinations_with_replacement(moves, 2))


def _apart(seen: Observation, one: Record, other: Record, setting: Setting) -> bool:
    first, second = copier(1), copier(2)
    claims = [*_happens(one, 1, setting), *_happens(other, 2, setting)]
    claims += [compare(Relation.EQ, first.sum(t), second.sum(t)) for t in (seen.value, seen.address)]
    same = same_program(setting, 1, 2)
    apart = [*claims, negate(same)]
    if not setting.never([*apart, *distinctness(setting.tickets, apart, setting.domain)]):
        return False
    rounds = conjunction(compare(Relation.EQ, own(loop.iteration, 1), own(loop.iteration, 2)) for loop in one.loops)
    again = [*claims, same, negate(rounds) if one is other else TRUE]
    return FALSE in again or setting.never([*again, *distinctness(setting.tickets, again, setting.domain)])


def _starts(seen: Observation, moves: tuple[Record, ...], setting: Setting) -> bool:
    """Whether somebody's number is there before the launch, if that is known: else nobody would ever have its turn."""
    initial = setting.initial(seen.atomic)
    if initial is None:
        return True
    first = copier(1).condition(compare(Relation.EQ, seen.value, number(initial)))
    return any(not setting.never([*_happens(move, 1, setting), first]) for move in moves)


def unordered(question: Question, found: Sequence[Baton], setting: Setting) -> list[Condition]:
    """What the numbers say if neither execution happens before the other."""
    if question.same_program:
        return []
    out = []
    for baton, move in ((each, move) for each in found for move in each.moves):
        for before, a, after, b in ((question.first, 1, question.second, 2), (question.second, 2, question.first, 1)):
            mine = baton.turn(before, move, setting)
            if mine is None or published(before, move, setting, (a, a)) == FALSE:
                continue
            for theirs in observations(after, setting.reading):
                if theirs.atomic.access.index in baton.looks:
                    out.append(_not_later(baton, move, mine, a, theirs, b))
    return out


def _not_later(baton: Baton, move: Record, mine: Observation, a: int, theirs: Observation, b: int) -> Condition:
    """The look of copy `b` has not found a number behind that of copy `a`."""
    first, second = copier(a), copier(b)
    there = conjunction(
        (
            first.condition(both(move.path, move.mask)),
            second.condition(theirs.executed),
            compare(Relation.EQ, first.sum(mine.address), second.sum(theirs.address)),
        )
    )
    return either(negate(there), negate(_ahead(first.sum(mine.value), second.sum(theirs.value), baton.step)))
