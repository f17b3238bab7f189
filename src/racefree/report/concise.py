"""One line per finding and per gap, for grep and editors, and the summary line."""

from __future__ import annotations

from racefree.report import text
from racefree.report.model import Report, count, distinct_findings, distinct_gaps
from racefree.report.rules import RULES


def render(report: Report) -> str:
    lines = []
    for occurrence in distinct_findings(report):
        finding = occurrence.finding
        other = f" and {report.place(finding.second.site)}" if finding.second.site != finding.first.site else ""
        # Accesses of engines often have no source line: their names tell one race from another.
        who = "" if occurrence.subject.kind == "launch" else f" by {finding.first.actor} and {finding.second.actor}"
        what = f"{finding.rule} {RULES[finding.rule].title} on {finding.first.place}{who}{other}"
        lines.append(f"{report.place(occurrence.site)}: {what} [{occurrence.subject.name}]")
    for unanalysed in distinct_gaps(report):
        reason = " ".join(unanalysed.gap.reason.split())
        where = report.place(unanalysed.gap.site)
        lines.append(f"{where}: not-analysed {unanalysed.gap.kind}: {reason} [{', '.join(unanalysed.subjects)}]")
    lines += text.script_ending(report)
    return "\n".join([*lines, text.summary(count(report))]) + "\n"
