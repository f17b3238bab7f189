"""All rules about synchronisation together: what must hold for two executions of a question to be unordered."""

from __future__ import annotations

from dataclasses import dataclass, field

from racefree.proof.symbolic.questions import Question
from racefree.proof.symbolic.sync import arrivals, batons, chains, exclusion
from racefree.proof.symbolic.sync.locations import acquires
from racefree.proof.symbolic.sync.origins import Origins
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import Condition


@dataclass(slots=True)
class Order:
    """The rules that apply to one launch, found once."""

    setting: Setting
    origins: Origins
    counters: tuple[arrivals.Counter, ...] = ()
    locks: tuple[exclusion.Lock, ...] = ()
    batons: tuple[batons.Baton, ...] = ()
    chains: tuple[chains.Chain, ...] = ()
    _found: bool = field(default=False)

    def unordered(self, question: Question) -> list[Condition]:
        """See the module docstring. Nothing is known inside one program."""
        if question.same_program:
            return []
        self._find()
        return [
            *self.origins.unordered(question),
            *arrivals.unordered(question, self.counters, self.setting),
            *exclusion.unordered(question, self.locks, self.setting),
            *batons.unordered(question, self.batons, self.setting),
            *chains.unordered(question, self.chains, self.setting),
        ]

    @property
    def reads_contents(self) -> bool:
        """Whether a rule relies on what a location held before the launch."""
        initials = bool(self.locks) and any(self.setting.initial(lock.take) is not None for lock in self.locks)
        return bool(self.origins.used or self.chains or initials or any(c.first is not None for c in self.counters))

    @property
    def widths(self) -> frozenset[int]:
        """The widths of integers that count on with every program, so that they wrap on grids large enough."""
        moving = [c.add for c in self.counters] + [b.move for b in self.batons]
        return frozenset(8 * record.access.element_bytes for record in moving)

    def _find(self) -> None:
        if self._found:
            return
        self._found = True
        self.counters = arrivals.counters(self.setting, self.origins)
        self.locks = exclusion.locks(self.setting, self.origins)
        self.batons = batons.batons(self.setting, self.origins)
        self.chains = chains.chains(self.setting, self.origins)


def order(setting: Setting) -> Order | None:
    """The rules for a launch; None where no atomic acquires anything."""
    if not any(acquires(record) for record in setting.reading.records):
        return None
    return Order(setting, Origins(setting))
