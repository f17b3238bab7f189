"""The report as one HTML file that needs nothing else: findings with their source, maps of tensors, timelines of engines."""

from __future__ import annotations

import html
import json
from importlib import resources
from typing import Any

from racefree.access import Site
from racefree.report import text
from racefree.report.model import Finding, Report, Side, Subject, count
from racefree.report.rules import RULES
from racefree.report.source_line import caret
from racefree.verdict import Status

_AROUND = 3
_WORST_FIRST = (Status.RACES, Status.UNSUPPORTED, Status.VACUOUS, None, Status.OK)
"""None stands for a subject whose races are all allowed."""


def render(report: Report) -> str:
    title = html.escape(text.summary(count(report)))
    data = json.dumps(_data(report), separators=(",", ":")).replace("<", "\\u003c")
    parts = {"TITLE": title, "STYLE": asset("report.css"), "SCRIPT": scripts(), "DATA": data}
    page = asset("report.html")
    for name, value in parts.items():
        page = page.replace(f"@{name}@", value)
    return page


def scripts() -> str:
    """The scripts of the page."""
    return "\n".join(asset(name) for name in ("tensor_map.js", "timeline.js", "report.js"))


def asset(name: str) -> str:
    """A file that the page is made of."""
    return resources.files("racefree.report").joinpath("assets", name).read_text(encoding="utf-8")


def _data(report: Report) -> dict[str, Any]:
    subjects = sorted(report.subjects, key=lambda subject: _WORST_FIRST.index(subject.standing))
    return {
        "summary": text.summary(count(report)),
        "version": report.version,
        "notes": [*text.script_ending(report), *report.notes],
        "rules": {
            rule.name: {"title": rule.title, "meaning": rule.meaning, "hardware": rule.hardware}
            for rule in RULES.values()
        },
        "subjects": [_subject(report, subject) for subject in subjects],
    }


def _subject(report: Report, subject: Subject) -> dict[str, Any]:
    claim = subject.claim
    return {
        "kind": subject.kind,
        "name": subject.name,
        "status": "allowed" if subject.standing is None else subject.standing.value,
        "place": report.place(subject.site),
        "origin": report.place(subject.origin) if subject.origin else "",
        "details": subject.details,
        "repeats": subject.repeats,
        "seconds": subject.seconds,
        "findings": [_finding(report, finding) for finding in subject.findings],
        "allowed": [
            f"{text.said(a.finding.first)}; {text.said(a.finding.second)}: {text.why_allowed(report, a)}"
            for a in subject.allowed
        ],
        "fragile": [_finding(report, finding) for finding in subject.fragile],
        "gaps": [
            {
                "kind": g.kind,
                "reason": g.reason,
                "where": report.place(g.site),
                "config": g.config,
                "source": _excerpt(report, g.site),
                "line": g.site.line if g.site else 0,
            }
            for g in subject.gaps
        ],
        "claim": {"scope": claim.scope, "qualifiers": claim.qualifiers, "rungs": claim.rungs} if claim else None,
        "notes": subject.notes,
        "model": subject.memory_model,
        "grid": subject.records.get("grid"),
        "maps": subject.records.get("maps", []),
        "timeline": subject.records.get("timeline"),
    }


def _finding(report: Report, finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "title": RULES[finding.rule].title,
        "type": finding.race_type,
        "sides": [_side(report, side) for side in (finding.first, finding.second)],
        "reason": finding.reason,
        "hint": finding.hint,
        "config": finding.config,
    }


def _side(report: Report, side: Side) -> dict[str, Any]:
    return {
        "said": text.said(side),
        "actor": side.actor,
        "place": side.place,
        "where": report.place(side.site) if side.site else "",
        "source": _excerpt(report, side.site),
        "line": side.site.line if side.site else 0,
        "caret": caret(source, side) if (source := report.line(side.site)) is not None else None,
        "arithmetic": side.arithmetic,
        "function": side.site.function if side.site else "",
        "callers": [[c.function, report.place(c)] for c in (side.site.callers if side.site else ())],
    }


def _excerpt(report: Report, site: Site | None) -> list[tuple[int, str]]:
    if site is None:
        return []
    lines = report.sources.get(site.file, {})
    return [(n, lines[n].expandtabs(4)) for n in range(site.line - _AROUND, site.line + _AROUND + 1) if n in lines]
