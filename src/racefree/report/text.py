"""The report a person reads in a terminal: every race with its source, every gap once per site, one summary line last."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass

from racefree.report.model import (
    Allowed,
    Counts,
    Ending,
    NotAnalysed,
    Occurrence,
    Report,
    Side,
    Subject,
    count,
    distinct_findings,
    distinct_gaps,
)
from racefree.report.rules import RULES
from racefree.report.source_line import displayed
from racefree.verdict import Status

Paint = Callable[[str, str], str]
"""(text, style name) -> text with or without colour codes"""

_ANSI = {"race": "1;31", "gap": "1;33", "ok": "1;32", "place": "1", "dim": "2", "caret": "31"}


def plain(text: str, _style: str) -> str:
    return text


def ansi(text: str, style: str) -> str:
    return f"\x1b[{_ANSI[style]}m{text}\x1b[0m"


@dataclass(frozen=True, slots=True)
class Options:
    """`verbose` also shows what was proved; `quiet` leaves only races and gaps; `width` is in columns.

    `cut` leaves out what a source line has beyond the width, so that its marks stay below it.
    """

    verbose: bool = False
    quiet: bool = False
    colour: bool = False
    width: int = 100
    cut: bool = False

    @property
    def paint(self) -> Paint:
        return ansi if self.colour else plain


def render(report: Report, options: Options | None = None) -> str:
    options = options or Options()
    blocks = [race(report, occurrence, options) for occurrence in distinct_findings(report)]
    blocks.append(render_gaps(report, options))
    if options.verbose:
        blocks += [_proofs(report, options), _allowed(report, options), _fragile(report, options)]
    blocks += [notes(report, options), *script_ending(report), summary(count(report), options)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def render_gaps(report: Report, options: Options | None = None) -> str:
    """One line for each part that was not analysed."""
    return "\n".join(gap(report, unanalysed, options or Options()) for unanalysed in distinct_gaps(report))


def race(report: Report, occurrence: Occurrence, options: Options) -> str:
    finding, subject, paint = occurrence.finding, occurrence.subject, options.paint
    head = (
        f"{paint(report.place(occurrence.site), 'place')}: {paint('RACE', 'race')} {finding.rule} "
        f"{RULES[finding.rule].title} on {finding.first.place}"
    )
    lines = [head, *_context(report, occurrence)]
    lines += _accesses(report, (finding.first, finding.second), options)
    lines += _labelled("why", finding.reason, options)
    lines += _labelled("hint", finding.hint, options)
    if not options.quiet:
        lines += _labelled("more", f"racefree explain {finding.rule}", options)
    return "\n".join(lines) if subject else head


def _context(report: Report, occurrence: Occurrence) -> list[str]:
    subject = occurrence.subject
    origin = f", launched at {report.place(subject.origin)}" if subject.origin else ""
    if subject.kind == "launch":
        config = f", config {occurrence.finding.config}" if occurrence.finding.config else ""
        lines = [f"  launch of {subject.name}{origin}{config}"]
    else:
        lines = [f"  {subject.kind} {subject.name}, {occurrence.finding.config}"]
    lines += [f"  {detail}" for detail in subject.details]
    if occurrence.launches > 1:
        lines.append(f"  the same race in {occurrence.launches} launches; this is the first")
    return lines


def _accesses(report: Report, sides: tuple[Side, Side], options: Options) -> list[str]:
    """Both accesses with their source lines; under each a caret, who does what there, and how its address came about."""
    numbers = [str(side.site.line) for side in sides if side.site]
    gutter = " " * max((len(number) for number in numbers), default=1)
    lines: list[str] = []
    for side in sides:
        source = report.line(side.site)
        if side.site is None or source is None:
            where = f" at {report.place(side.site)}" if side.site else ""
            lines.append(f"  {gutter} | {said(side)}{where}")
            lines += [f"  {gutter} |   {line}" for line in _beside(report, side)]
            continue
        if side.site != sides[0].site and sides[0].site and side.site.file != sides[0].site.file:
            lines.append(f"  {gutter} | {report.path(side.site.file)}")
        beside_gutter = options.width - len(gutter) - 5
        shown, start, length = displayed(source, side, max(20, beside_gutter) if options.cut else None)
        lines.append(f"  {side.site.line:>{len(gutter)}} | {shown}")
        mark = options.paint("^" * length, "caret")
        words = [said(side), *_beside(report, side)]
        at = start + length + 1
        if max(map(len, words)) > beside_gutter - at:
            lines.append(f"  {gutter} | {' ' * start}{mark}")
            at = max(0, min(start, beside_gutter - max(map(len, words))))
        else:
            lines.append(f"  {gutter} | {' ' * start}{mark} {words.pop(0)}")
        lines += [f"  {gutter} | {' ' * at}{line}" for line in words]
    return lines


def _beside(report: Report, side: Side) -> list[str]:
    """The address arithmetic of an access, and the calls that lead to it."""
    lines = [f"at {side.arithmetic}"] if side.arithmetic else []
    function = side.site.function if side.site else ""
    for caller in side.site.callers if side.site else ():
        lines.append(f"{f'in {function}, ' if function else ''}called at {report.place(caller)}")
        function = caller.function
    return lines


def said(side: Side) -> str:
    detail = f", {side.detail}" if side.detail else ""
    return f"{side.operation} of {side.place} by {side.actor}{detail}"


def told_at(report: Report, side: Side) -> str:
    """What `told` says, and where in the source, if that is known."""
    return f"{told(side)} at {report.place(side.site)}" if side.site else told(side)


def told(side: Side) -> str:
    """What `said` says, and how the address came about."""
    return f"{said(side)}, at {side.arithmetic}" if side.arithmetic else said(side)


def _labelled(label: str, text: str, options: Options) -> list[str]:
    if not text:
        return []
    room = max(40, options.width - 8)
    first, *rest = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    return [f"  {label:<5} {first}", *(f"        {line}" for line in rest)]


def gap(report: Report, unanalysed: NotAnalysed, options: Options) -> str:
    gap, paint = unanalysed.gap, options.paint
    head = f"{paint(report.place(gap.site), 'place')}: {paint('NOT ANALYSED', 'gap')}"
    return f"{head} {gap.kind}: {gap_told(unanalysed)}"


def gap_told(unanalysed: NotAnalysed) -> str:
    """The reason in one line, with the kernels it was met in."""
    where = ", ".join(unanalysed.subjects[:3]) + (", ..." if len(unanalysed.subjects) > 3 else "")
    times = f", {unanalysed.launches} launches" if unanalysed.launches > 1 else ""
    return f"{' '.join(unanalysed.gap.reason.split())} ({where}{times})"


def _proofs(report: Report, options: Options) -> str:
    """One line for each kernel and claim; launches that were proved in the same words share it."""
    alike: dict[str, list[Subject]] = {}
    for subject in report.subjects:
        if subject.status is Status.OK:
            alike.setdefault(_proved(report, subject, options), []).append(subject)
    return "\n".join(f"{words}{_effort(subjects)}" for words, subjects in alike.items())


def _proved(report: Report, subject: Subject, options: Options) -> str:
    claim = subject.claim
    assumed = f"; {', '.join(claim.qualifiers)}" if claim and claim.qualifiers else ""
    scope = f" for {claim.scope}" if claim else ""
    rungs = f" [{', '.join(claim.rungs)}]" if claim and claim.rungs else ""
    head = f"{options.paint(report.place(subject.site), 'place')}: {options.paint('ok', 'ok')}"
    model = f"; memory model: {subject.memory_model}" if subject.memory_model else ""
    return f"{head} {subject.name} proved race-free{scope}{assumed}{model}{rungs}"


def _effort(subjects: list[Subject]) -> str:
    launches = sum(subject.repeats for subject in subjects)
    seconds = sum(subject.seconds for subject in subjects)
    return f" in {seconds * 1e3:.0f} ms" if launches == 1 else f" in {launches} launches, {seconds * 1e3:.0f} ms"


def _allowed(report: Report, options: Options) -> str:
    lines = []
    for subject in report.subjects:
        for allowed in subject.allowed:
            finding = allowed.finding
            what = f"{finding.rule} {RULES[finding.rule].title} on {finding.first.place}"
            place = options.paint(report.place(finding.site or subject.site), "place")
            lines.append(f"{place}: allowed: {what} ({subject.name}): {why_allowed(report, allowed)}")
    return "\n".join(dict.fromkeys(lines))


def why_allowed(report: Report, allowed: Allowed) -> str:
    where = "" if allowed.comment is None else f", {report.place(allowed.comment)}"
    return f"{allowed.reason}{where}"


def _fragile(report: Report, options: Options) -> str:
    lines = []
    for subject in report.subjects:
        for finding in subject.fragile:
            lines.append(
                f"{options.paint(report.place(finding.site), 'place')}: note: {subject.name} would race at another grid: "
                f"{finding.first.actor} and {finding.second.actor} on {finding.first.place}"
            )
    return "\n".join(dict.fromkeys(lines))


def notes(report: Report, options: Options) -> str:
    lines = [f"note: {note}" for note in report.notes]
    for subject in report.subjects:
        lines += [f"{report.place(subject.site)}: note: {subject.name}: {note}" for note in subject.notes]
    return "" if options.quiet else "\n".join(dict.fromkeys(lines))


def script_ending(report: Report) -> list[str]:
    """One line on how the script ended, none when it simply finished."""
    script = report.script
    if script is None or script.ending is Ending.FINISHED:
        return []
    return [f"{report.path(script.path)}: the script {script.text}"]


def summary(counts: Counts, options: Options | None = None) -> str:
    """The last line. It always has the same figures, zeros included, so that it can be compared and searched.

    Races that were allowed follow only when there are some.
    """
    paint = options.paint if options else plain
    parts = [f"{counts.launches} launches"] if counts.launches or not counts.programs else []
    if counts.programs:
        parts.append(f"{counts.programs} engine programs")
    races = f"{counts.races} races"
    figures = (
        f"{paint(races, 'race') if counts.races else races} in {counts.racing}, {counts.not_analysed} not analysed, "
        f"{counts.vacuous} vacuous, {counts.proved} proved race-free"
    )
    aside = f"; {counts.allowed} races allowed" if counts.allowed else ""
    return f"{' and '.join(parts)}: {figures}{aside}"
