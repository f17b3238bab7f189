"""Workflow commands that GitHub shows as annotations beside the changed lines: races as errors, gaps as warnings."""

from __future__ import annotations

from racefree.access import Site
from racefree.report import text
from racefree.report.model import Report, count, distinct_findings, distinct_gaps
from racefree.report.rules import RULES


def render(report: Report) -> str:
    lines = []
    for occurrence in distinct_findings(report):
        finding = occurrence.finding
        title = f"{finding.rule} {RULES[finding.rule].title}"
        message = f"{finding.first.place}: {text.told(finding.first)}; {text.told_at(report, finding.second)}. "
        message += finding.reason + (f". Hint: {finding.hint}" if finding.hint else "")
        lines.append(_command(report, "error", occurrence.site, title, message))
    for unanalysed in distinct_gaps(report):
        title = f"not analysed: {unanalysed.gap.kind}"
        lines.append(_command(report, "warning", unanalysed.gap.site, title, text.gap_told(unanalysed)))
    lines += [f"::notice::{_data(note)}" for note in report.notes]
    lines += [f"::warning::{_data(ending)}" for ending in text.script_ending(report)]
    return "\n".join([*lines, text.summary(count(report))]) + "\n"


def _command(report: Report, level: str, site: Site | None, title: str, message: str) -> str:
    properties = {} if site is None else {"file": report.path(site.file)}
    if site is not None and site.line:
        properties["line"] = str(site.line)
        if site.column:
            properties["col"] = str(site.column)
    properties["title"] = title
    return f"::{level} {','.join(f'{name}={_property(value)}' for name, value in properties.items())}::{_data(message)}"


def _data(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
