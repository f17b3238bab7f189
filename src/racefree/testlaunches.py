"""The launches of one test: those of all its threads, in the order in which they were made."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from racefree.inorder import InOrder
from racefree.launch import Launch
from racefree.report import text
from racefree.report.build import of_launches
from racefree.report.model import Occurrence, Report, distinct_findings
from racefree.report.rules import RULES
from racefree.verdict import CompiledRaceRecord


@dataclass(slots=True)
class TestLaunches:
    """What one test has launched so far, and how many of its checks failed after that and were passed over.

    `queue` has the launches that are still being analysed. `judged` counts the launches that a result of the test accounts for,
    `told` those that the sum of all tests has heard of.
    """

    __test__ = False

    launches: list[Launch] = field(default_factory=list)
    passed_over: int = 0
    judged: int = 0
    told: int = 0
    queue: InOrder = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.queue = InOrder(self.launches.append)

    @property
    def races(self) -> tuple[CompiledRaceRecord, ...]:
        return tuple(race for launch in self.launches for race in launch.races)

    def check(self) -> None:
        """Fail the test here if one of its launches races."""
        report = of_launches(self.launches)
        found = distinct_findings(report)
        if found:
            pytest.fail(told(report, found), pytrace=False)

    def unjudged(self) -> list[Launch]:
        """The launches that nothing accounts for yet; from now on something does. Waits for those that have begun."""
        self.queue.settle()
        new, self.judged = self.launches[self.judged :], len(self.launches)
        return new

    def untold(self) -> list[Launch]:
        """The launches that were not told yet; from now on they were."""
        new, self.told = self.launches[self.told :], len(self.launches)
        return new


def told(report: Report, races: Any) -> str:
    """What a test that fails for its races says."""
    occurrences: list[Occurrence] = list(races)
    shown = [text.race(report, occurrence, text.Options()) for occurrence in occurrences]
    rules = sorted({occurrence.finding.rule for occurrence in occurrences})
    head = f"this test launches kernels that race: {', '.join(f'{rule} {RULES[rule].title}' for rule in rules)}"
    return "\n\n".join([head, *shown])
