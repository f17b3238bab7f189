"""All rules about synchronisation together: what must hold for two executions of a question to be unordered."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

from racefree.proof.symbolic.questions import Question, copier, in_grid
from racefree.proof.symbolic.records import Await
from racefree.proof.symbolic.sync import arrivals, batons, chains, exclusion, phases
from racefree.proof.symbolic.sync.locations import acquires
from racefree.proof.symbolic.sync.observing import observed
from racefree.proof.symbolic.sync.origins import Origins
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import Condition, both

FARTHEST = 3
"""How many programs may hand order on, one to the next, apart from what the rules about rows and turns know."""


@dataclass(slots=True)
class Order:
    """The rules that apply to one launch, found once."""

    setting: Setting
    origins: Origins
    counters: tuple[arrivals.Counter, ...] = ()
    locks: tuple[exclusion.Lock, ...] = ()
    batons: tuple[batons.Baton, ...] = ()
    chains: tuple[chains.Chain, ...] = ()
    phases: tuple[phases.Phases, ...] = ()
    _found: bool = field(default=False)

    def unordered(self, question: Question, *, far: bool = False) -> list[Condition]:
        """See the module docstring. Nothing is known inside one program.

        Order may be handed on from program to program; that is followed only if `far`.
        """
        if question.same_program:
            return []
        self._find()
        return [
            *self.origins.unordered(question, FARTHEST if far else 1),
            *arrivals.unordered(question, self.counters, self.setting),
            *exclusion.unordered(question, self.locks, self.setting),
            *batons.unordered(question, self.batons, self.setting),
            *chains.unordered(question, self.chains, self.setting),
            *phases.unordered(question, self.phases, self.setting),
        ]

    def handed_on(self, question: Question) -> bool:
        """Whether a release that one side may acquire from itself comes after an acquire."""
        return self.origins.handed_on(question)

    def stuck(self) -> bool:
        """Whether some loop waits for what the location neither holds before the launch nor is ever given."""
        self._find()
        return any(self._waits_in_vain(waiting) for waiting in self.setting.reading.awaits)

    def _waits_in_vain(self, waiting: Await) -> bool:
        fresh = count(2)
        facts = [*in_grid(self.setting.domain, 1), copier(1).condition(both(waiting.path, waiting.done))]
        for seen in observed((waiting.done,), self.setting.reading):
            facts.append(self.origins.explained(seen, 1, fresh))
            facts.append(arrivals.counted(seen, self.counters, self.setting, 1))
            facts.append(phases.counted(seen, self.phases, 1))
        return self.setting.never(facts)

    @property
    def reads_contents(self) -> bool:
        """Whether a rule relies on what a location held before the launch."""
        initials = bool(self.locks) and any(self.setting.initial(lock.take) is not None for lock in self.locks)
        counted = bool(self.phases) or any(c.first is not None for c in self.counters)
        counted = counted or any(baton.ends for baton in self.batons)
        return bool(self.origins.used or self.chains or initials or counted)

    @property
    def widths(self) -> frozenset[int]:
        """The widths of integers that count on with every program, so that they wrap on grids large enough."""
        moving = [c.add for c in self.counters] + [move for b in self.batons for move in b.moves]
        moving += [step for counter in self.phases for step in counter.steps]
        return frozenset(8 * record.access.element_bytes for record in moving)

    def _find(self) -> None:
        if self._found:
            return
        self._found = True
        self.counters = arrivals.counters(self.setting)
        self.locks = exclusion.locks(self.setting, self.origins)
        self.batons = batons.batons(self.setting, self.origins)
        self.chains = chains.chains(self.setting, self.origins)
        self.phases = phases.phases(self.setting, self.origins)


def order(setting: Setting) -> Order | None:
    """The rules for a launch; None where no atomic acquires anything."""
    if not any(acquires(record) for record in setting.reading.records):
        return None
    return Order(setting, Origins(setting))
