"""The report as JUnit XML: one test case per subject, a failure per racing one, an error per one not analysed."""

from __future__ import annotations

from collections import Counter
from xml.etree import ElementTree

from racefree.report import text
from racefree.report.model import Allowed, Finding, Gap, Report, Subject
from racefree.report.rules import RULES
from racefree.verdict import Status


def render(report: Report) -> str:
    cases = [_case(report, subject) for subject in report.subjects]
    _tell_apart(cases)
    endings = text.script_ending(report)
    if endings:
        cases.append(_ending(endings[0]))
    figures = {
        "name": "racefree",
        "tests": str(len(cases)),
        "failures": str(sum(case.find("failure") is not None for case in cases)),
        "errors": str(sum(case.find("error") is not None for case in cases)),
        "skipped": "0",
        "time": f"{report.seconds:.3f}",
    }
    suites = ElementTree.Element("testsuites", {k: v for k, v in figures.items() if k != "skipped"})
    suite = ElementTree.SubElement(suites, "testsuite", figures)
    suite.extend(cases)
    notes = text.notes(report, text.Options())
    if notes:
        ElementTree.SubElement(suite, "system-out").text = _clean(notes)
    ElementTree.indent(suites)
    return ElementTree.tostring(suites, encoding="unicode", xml_declaration=False).join(
        ('<?xml version="1.0" encoding="UTF-8"?>\n', "\n")
    )


def _case(report: Report, subject: Subject) -> ElementTree.Element:
    where = report.place(subject.origin or subject.site)
    case = ElementTree.Element(
        "testcase",
        {
            "classname": _clean(subject.name),
            "name": _clean(f"{subject.kind} at {where}"),
            "time": f"{subject.seconds:.3f}",
        },
    )
    if subject.standing is None:
        ElementTree.SubElement(case, "system-out").text = _clean(
            "\n".join(_allowed(report, subject, a) for a in subject.allowed)
        )
    elif subject.standing is Status.RACES:
        _note(case, "failure", [_race(report, subject, f) for f in subject.findings] or ["races"], "race")
    elif subject.standing is not Status.OK:
        _note(case, "error", [_gap(report, g) for g in subject.gaps] or [subject.status.value], "not-analysed")
    elif subject.claim is not None:
        out = ElementTree.SubElement(case, "system-out")
        assumed = ", ".join(subject.claim.qualifiers)
        out.text = _clean(f"proved race-free for {subject.claim.scope}" + (f", {assumed}" if assumed else ""))
    return case


def _tell_apart(cases: list[ElementTree.Element]) -> None:
    """Numbers cases of one name, which whoever reads the file would take for one case."""
    met: Counter[tuple[str | None, str | None]] = Counter()
    for case in cases:
        key = (case.get("classname"), case.get("name"))
        met[key] += 1
        if met[key] > 1:
            case.set("name", f"{key[1]} ({met[key]})")


def _ending(told: str) -> ElementTree.Element:
    case = ElementTree.Element("testcase", {"classname": "script", "name": "runs to its end", "time": "0.000"})
    _note(case, "error", [told], "script")
    return case


def _note(case: ElementTree.Element, tag: str, lines: list[str], kind: str) -> None:
    element = ElementTree.SubElement(case, tag, {"message": _clean(lines[0]), "type": kind})
    element.text = _clean("\n".join(lines))


def _race(report: Report, subject: Subject, finding: Finding) -> str:
    return (
        f"{report.place(finding.site or subject.site)}: {finding.rule} {RULES[finding.rule].title}: "
        f"{text.told(finding.first)}; {text.told_at(report, finding.second)}"
    )


def _allowed(report: Report, subject: Subject, allowed: Allowed) -> str:
    return f"{_race(report, subject, allowed.finding)}: {text.why_allowed(report, allowed)}"


def _gap(report: Report, gap: Gap) -> str:
    return f"{report.place(gap.site)}: not analysed: {gap.kind}: {gap.reason}"


def _clean(value: str) -> str:
    """XML 1.0 has no control characters but tab and newline."""
    return "".join(c if c in "\t\n" or (c >= " " and not 0xD800 <= ord(c) <= 0xDFFF) else "\ufffd" for c in value)
