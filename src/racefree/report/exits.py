"""The exit status a report stands for."""

from __future__ import annotations

from racefree.report.model import Ending, Report, count

PROVED = 0
RACES = 1
BAD_INPUT = 2
NOT_ANALYSED = 3
NOTHING_TO_CHECK = 5
INTERNAL_ERROR = 70
INTERRUPTED = 130

_INTERNAL_KIND = "internal-error"


def status(report: Report, *, interrupted: bool = False) -> int:
    """Races weigh most, then an interrupt, a fault of racefree, and what was not analysed.

    A script that stopped with an exception cannot count as proved: what it would have launched later is unknown. If it
    stopped before its first launch, it could not be checked at all.
    """
    counts = count(report)
    ending = report.script.ending if report.script else Ending.FINISHED
    if counts.races or counts.racing:
        return RACES
    if interrupted or ending is Ending.INTERRUPTED:
        return INTERRUPTED
    if any(gap.kind == _INTERNAL_KIND for subject in report.subjects for gap in subject.gaps):
        return INTERNAL_ERROR
    if not report.subjects:
        return BAD_INPUT if ending is Ending.RAISED else NOTHING_TO_CHECK
    if counts.not_analysed or counts.vacuous or ending is Ending.RAISED:
        return NOT_ANALYSED
    return PROVED
