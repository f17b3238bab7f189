"""The report as Markdown, for a pull request or a job summary."""

from __future__ import annotations

import re
from collections.abc import Sequence

from racefree.report import text
from racefree.report.model import (
    Allowed,
    Occurrence,
    Report,
    Side,
    Subject,
    count,
    distinct_findings,
    distinct_gaps,
)
from racefree.report.rules import RULES
from racefree.verdict import Status


def render(report: Report) -> str:
    blocks = ["# racefree", text.summary(count(report))]
    blocks += [_race(report, occurrence) for occurrence in distinct_findings(report)]
    gaps = distinct_gaps(report)
    if gaps:
        blocks.append("## Not analysed")
        rows = [
            (_code(report.place(g.gap.site)), g.gap.kind, _escaped(g.gap.reason), ", ".join(map(_code, g.subjects)))
            for g in gaps
        ]
        blocks.append(_table(("where", "kind", "reason", "kernels"), rows))
    allowed = [(subject, each) for subject in report.subjects for each in subject.allowed]
    if allowed:
        blocks.append("## Allowed")
        told = dict.fromkeys(_allowed(report, subject, each) for subject, each in allowed)
        blocks.append(_table(("kernel", "where", "race", "why"), list(told)))
    proved = [subject for subject in report.subjects if subject.status is Status.OK]
    if proved:
        blocks.append("## Proved race-free")
        blocks.append(_table(("kernel", "where", "for", "assuming"), [_proof(report, subject) for subject in proved]))
    notes = text.notes(report, text.Options())
    if notes:
        blocks += ["## Notes", "\n".join(f"- {_escaped(note.removeprefix('note: '))}" for note in notes.splitlines())]
    blocks += map(_escaped, text.script_ending(report))
    return "\n\n".join(blocks) + "\n"


def _race(report: Report, occurrence: Occurrence) -> str:
    finding, rule = occurrence.finding, RULES[occurrence.finding.rule]
    lines = [f"## {finding.rule}: {rule.title} on {_code(finding.first.place)}", ""]
    lines.append(f"{_code(occurrence.subject.name)}{_origin(report, occurrence.subject)}.")
    for side in (finding.first, finding.second):
        lines += ["", *_access(report, side)]
    lines += ["", f"**Why:** {_escaped(finding.reason)}"]
    if finding.hint:
        lines += ["", f"**Hint:** {_escaped(finding.hint)}"]
    return "\n".join(lines)


def _access(report: Report, side: Side) -> list[str]:
    source = report.line(side.site)
    where = f", {_code(report.place(side.site))}" if side.site else ""
    lines = [f"{_escaped(text.told(side))}{where}{':' if source is not None else '.'}"]
    if source is not None:
        fence = "````" if "```" in source else "```"
        lines += ["", f"{fence}python", source.strip(), fence]
    return lines


def _origin(report: Report, subject: Subject) -> str:
    """What to say of a kernel or a program after its name: where it was met."""
    if subject.kind != "launch":
        place = f" of {_code(report.place(subject.site))}"
    else:
        place = f", first met in the launch at {_code(report.place(subject.origin))}" if subject.origin else ""
    return f"{place} ({subject.details[0]})" if subject.details else place


def _allowed(report: Report, subject: Subject, allowed: Allowed) -> tuple[str, ...]:
    finding = allowed.finding
    return (
        _code(subject.name),
        _code(report.place(finding.site or subject.site)),
        f"{finding.rule} on {_code(finding.first.place)}",
        _escaped(text.why_allowed(report, allowed)),
    )


def _proof(report: Report, subject: Subject) -> tuple[str, ...]:
    claim = subject.claim
    times = f" ({subject.repeats} launches)" if subject.repeats > 1 else ""
    assumed = ", ".join(claim.qualifiers) if claim else ""
    return (
        f"{_code(subject.name)}{times}",
        _code(report.place(subject.site)),
        claim.scope if claim else "",
        assumed or "nothing",
    )


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    ruled = [head, tuple("---" for _ in head), *(tuple(map(_cell, row)) for row in rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in ruled)


def _cell(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|")


def _code(value: str) -> str:
    """A code span, whose fence is longer than any row of backticks in it."""
    fence = "`" * (max(map(len, re.findall("`+", value)), default=0) + 1)
    blank = " " if "`" in value else ""
    return f"{fence}{blank}{value}{blank}{fence}"


def _escaped(value: str) -> str:
    return re.sub(r"[\\`*_<>&]", r"\\\g<0>", value)
