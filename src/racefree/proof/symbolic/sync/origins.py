"""Who wrote what an atomic found: the initial value, or a program whose release, and all before it, came first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from racefree.access import Kind
from racefree.proof.symbolic.questions import Question, copier, in_grid, own
from racefree.proof.symbolic.records import Record
from racefree.proof.symbolic.sync.locations import acquires, releases, writers
from racefree.proof.symbolic.sync.observing import Observation, observations
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
)
from racefree.proof.symbolic.variables import program_id

MOST_SEEN = 4


@dataclass(slots=True)
class Origins:
    """The rule for one launch. `used` lists the atomics whose initial value it has relied on."""

    setting: Setting
    used: set[int] = field(default_factory=set)
    _writers: dict[int, tuple[Record, ...] | None] = field(default_factory=dict)

    def unordered(self, question: Question, depth: int) -> list[Condition]:
        """What must hold for neither execution to happen before the other, as far as `depth` programs hand order on."""
        if question.same_program:
            return []
        fresh = count(3)
        first = self._not_before(question.first, 1, question.second, 2, fresh, depth)
        second = self._not_before(question.second, 2, question.first, 1, fresh, depth)
        return [*first, *second]

    def handed_on(self, question: Question) -> bool:
        """Whether a writer of what one side has seen depends on an atomic itself."""
        reading = self.setting.reading
        seen = [s for r in (question.first, question.second) for s in observations(r, reading)]
        writing = [w for s in seen if self.setting.initial(s.atomic) is not None for w in self.changing(s.atomic) or ()]
        return any(observations(writer, reading) for writer in writing)

    def _not_before(
        self, record: Record, a: int, event: Record, b: int, fresh: Iterator[int], depth: int
    ) -> list[Condition]:
        """What must hold for `record` in the program of copy `a` not to happen before `event` in that of copy `b`."""
        seen = observations(event, self.setting.reading)[:MOST_SEEN]
        out = [self._unseen(record, a, each, b, fresh, depth) for each in seen]
        return [c for c in out if c != TRUE]

    def _unseen(self, record: Record, a: int, seen: Observation, b: int, fresh: Iterator[int], depth: int) -> Condition:
        """The value seen was there before the launch, or somebody wrote it who had not acquired `record`."""
        initial = self.setting.initial(seen.atomic)
        changing = self.changing(seen.atomic)
        if initial is None or changing is None:
            return TRUE
        self.used.add(seen.atomic.access.index)
        names = copier(b)
        address, value = names.sum(seen.address), names.sum(seen.value)
        cases = compare(Relation.EQ, value, number(initial))
        for writer in changing:
            c = next(fresh)
            wrote = self.wrote(writer, c, address, value)
            if acquires(seen.atomic) and releases(writer):
                here = both(same_program(self.setting, a, c), published(record, writer, self.setting, (a, c)))
                wrote = both(wrote, negate(here))
                if depth > 1 and wrote != FALSE:
                    wrote = both(wrote, conjunction(self._not_before(record, a, writer, c, fresh, depth - 1)))
            cases = either(cases, wrote)
        return either(negate(names.condition(seen.executed)), cases)

    def explained(self, seen: Observation, b: int, fresh: Iterator[int]) -> Condition:
        """The value seen was there before the launch, or somebody wrote it; as far as that is known."""
        initial, changing = self.setting.initial(seen.atomic), self.changing(seen.atomic)
        if initial is None or changing is None:
            return TRUE
        names = copier(b)
        address, value = names.sum(seen.address), names.sum(seen.value)
        cases = compare(Relation.EQ, value, number(initial))
        for writer in changing:
            cases = either(cases, self.wrote(writer, next(fresh), address, value))
        return either(negate(names.condition(seen.executed)), cases)

    def changing(self, atomic: Record) -> tuple[Record, ...] | None:
        index = atomic.access.index
        if index not in self._writers:
            self._writers[index] = writers(atomic, self.setting)
        return self._writers[index]

    def wrote(self, writer: Record, copy: int, address: Sum, value: Sum) -> Condition:
        """The program of a copy has left `value` at `address`, as far as that can be told."""
        names = copier(copy)
        out = conjunction((*in_grid(self.setting.domain, copy), names.condition(both(writer.path, writer.mask))))
        out = both(out, compare(Relation.EQ, names.sum(writer.address), address))
        left = writer.written[1 if writer.access.kind is Kind.CAS else 0]
        if isinstance(left, Sum) and (writer.access.kind is Kind.CAS or writer.access.rmw == "exch"):
            out = both(out, compare(Relation.EQ, names.sum(left), value))
        return out


def same_program(setting: Setting, a: int, b: int) -> Condition:
    return conjunction(
        compare(Relation.EQ, own(program_id(axis), a), own(program_id(axis), b)) for axis in setting.domain.axes
    )
