"""Tells races, and what was not analysed, as launches are decided: each once per site."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TextIO

from racefree.launch import Launch
from racefree.report import text
from racefree.report.build import of_launches
from racefree.report.model import Report, distinct_findings, distinct_gaps


@dataclass(slots=True)
class LiveReport:
    """Called with each launch; writes what it has not written before to `stream` (stderr by default)."""

    stream: TextIO | None = None
    _told: set[str] = field(default_factory=set)

    def __call__(self, launch: Launch) -> None:
        report = of_launches([launch])
        for block in _blocks(report):
            if block not in self._told:
                self._told.add(block)
                (self.stream or sys.stderr).write(f"{block}\n")


def _blocks(report: Report) -> list[str]:
    options = text.Options()
    races = [text.race(report, occurrence, options) for occurrence in distinct_findings(report)]
    gaps = [text.gap(report, unanalysed, options) for unanalysed in distinct_gaps(report)]
    return [*races, *gaps, *text.notes(report, options).splitlines()]
