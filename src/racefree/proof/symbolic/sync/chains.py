"""Programs in a row, each waiting for the one before: order is handed on from the first to the last.

Program k along one axis waits for what only program k-1 writes, and writes its own afterwards. By induction whatever came
before the release of program j happens before whatever comes after the wait of program k, for all j < k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from racefree.proof.symbolic.questions import Question, copier, in_grid, own
from racefree.proof.symbolic.records import Await, Record
from racefree.proof.symbolic.sync.locations import acquires, changes_nothing, releases
from racefree.proof.symbolic.sync.observing import Observation, observations
from racefree.proof.symbolic.sync.origins import Origins
from racefree.proof.symbolic.sync.publishing import published
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import (
    FALSE,
    ONE,
    Condition,
    Relation,
    add,
    both,
    compare,
    conjunction,
    either,
    negate,
    number,
)
from racefree.proof.symbolic.variables import program_id


@dataclass(frozen=True, slots=True)
class Chain:
    """Along `axis`, the last look of each program but the first finds what `post` of the one before has left."""

    last: Observation
    post: Record
    axis: int


def chains(setting: Setting, origins: Origins) -> tuple[Chain, ...]:
    out = []
    for waiting in setting.reading.awaits:
        for post in setting.reading.records:
            if waiting.place and _inside_loop(waiting, setting):
                continue
            seen = next((s for s in observations(post, setting.reading) if _ends(s, waiting)), None)
            if seen is None or not acquires(seen.atomic) or not changes_nothing(seen.atomic) or post.loops:
                continue
            if releases(post) and origins.changing(seen.atomic) == (post,) and setting.initial(seen.atomic) is not None:
                out += [
                    Chain(seen, post, axis)
                    for axis in setting.domain.axes
                    if _one_before(seen, waiting, post, axis, setting, origins)
                ]
    return tuple(out)


def _inside_loop(waiting: Await, setting: Setting) -> bool:
    """Whether other loops surround the waiting one."""
    polls = [r for r in setting.reading.records if r.loops and r.loops[-1].number == waiting.number]
    return any(len(poll.loops) > 1 for poll in polls)


def _ends(seen: Observation, waiting: Await) -> bool:
    polled = seen.atomic.place == (*waiting.place, (waiting.number, 0))
    return polled and len(seen.rounds) == 1 and seen.executed == waiting.path


def _one_before(seen: Observation, waiting: Await, post: Record, axis: int, setting: Setting, origins: Origins) -> bool:
    """Every program but the first along the axis waits; what ends its wait is neither there from the start nor written by
    any program but the one before."""
    names = copier(2)
    place, extent = own(program_id(axis), 2), in_grid(setting.domain, 2)
    behind = compare(Relation.LE, ONE, place)
    if not setting.never([behind, *extent, names.condition(negate(waiting.path))]):
        return False
    ended = names.condition(both(waiting.path, waiting.done))
    address, value = names.sum(seen.address), names.sum(seen.value)
    initial = setting.initial(seen.atomic)
    assert initial is not None
    if not setting.never([ended, *extent, compare(Relation.EQ, value, number(initial))]):
        return False
    before = conjunction(
        compare(Relation.EQ, add((own(program_id(a), 3), number(1 if a == axis else 0))), own(program_id(a), 2))
        for a in setting.domain.axes
    )
    return setting.never([ended, *extent, origins.wrote(post, 3, address, value), negate(before)])


def unordered(question: Question, found: Sequence[Chain], setting: Setting) -> list[Condition]:
    """What the chains say if neither execution happens before the other."""
    if question.same_program:
        return []
    out = []
    for chain in found:
        for before, a, after, b in ((question.first, 1, question.second, 2), (question.second, 2, question.first, 1)):
            if published(before, chain.post, setting, (a, a)) == FALSE:
                continue
            if chain.last in observations(after, setting.reading):
                waited = copier(b).condition(chain.last.executed)
                out.append(either(negate(waited), negate(_behind(chain, a, b, setting))))
    return out


def _behind(chain: Chain, a: int, b: int, setting: Setting) -> Condition:
    """The program of copy `b` stands behind that of copy `a` in one row."""
    return conjunction(
        compare(Relation.LT if axis == chain.axis else Relation.EQ, own(program_id(axis), a), own(program_id(axis), b))
        for axis in setting.domain.axes
    )
