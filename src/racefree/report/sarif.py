"""The report as SARIF 2.1.0: races as failures, what was not analysed as open results, proofs as passes.

`render_for_github` keeps the races only, since GitHub raises an alert for every result of a file it is given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from racefree.access import Site
from racefree.report import exits, text
from racefree.report.model import Occurrence, Report, Side, allowed_findings, distinct_findings, distinct_gaps
from racefree.report.rules import RULES, Rule
from racefree.report.source_line import caret
from racefree.verdict import Status

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_ROOT = "SRCROOT"
_FINGERPRINT = "racefree/v1"
_GAP_RULE, _PROOF_RULE = "not-analysed", "race-free"

Json = dict[str, Any]


def render(report: Report) -> str:
    """Races, allowed ones with the suppression that sets them aside, gaps and proofs."""
    results = [*_races(report, distinct_findings(report)), *_allowed(report), *_gaps(report), *_proofs(report)]
    return _document(report, results)


def render_for_github(report: Report) -> str:
    """Races alone."""
    return _document(report, list(_races(report, distinct_findings(report))))


def _document(report: Report, results: list[Json]) -> str:
    used = {result["ruleId"] for result in results}
    rules = [_rule(rule) for rule in RULES.values()]
    rules += [_plain_rule(name, what) for name, what in _OTHER_RULES.items() if name in used]
    index = {rule["id"]: position for position, rule in enumerate(rules)}
    for result in results:
        result["ruleIndex"] = index[result["ruleId"]]
    driver = {"name": "racefree", "version": report.version, "rules": rules}
    run = {
        "tool": {"driver": driver},
        "originalUriBaseIds": {_ROOT: {"uri": _uri(report.root).rstrip("/") + "/"}},
        "columnKind": "unicodeCodePoints",
        "invocations": [_invocation(report)],
        "results": results,
    }
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=1) + "\n"


_OTHER_RULES = {
    _GAP_RULE: "This part was not analysed: nothing is claimed about it.",
    _PROOF_RULE: "Proved free of data races, within the stated scope.",
}


def _rule(rule: Rule) -> Json:
    return {
        "id": rule.name,
        "name": "".join(word.capitalize() for word in rule.title.replace("-", " ").split()),
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.meaning},
        "help": {"text": f"{rule.meaning}\n\n{rule.hardware}\n\nRacy:\n{rule.racy}\n\nFixed:\n{rule.fixed}"},
        "defaultConfiguration": {"level": "error"},
    }


def _plain_rule(name: str, what: str) -> Json:
    return {"id": name, "shortDescription": {"text": what}, "defaultConfiguration": {"level": "none"}}


def _races(report: Report, occurrences: Iterable[Occurrence]) -> Iterator[Json]:
    for occurrence in occurrences:
        finding = occurrence.finding
        said = f"{text.told(finding.first)}; {text.told(finding.second)}"
        parts = [f"{RULES[finding.rule].title} on {finding.first.place}: {said}.", finding.reason]
        if finding.hint:
            parts.append(f"Hint: {finding.hint}.")
        result = {
            "ruleId": finding.rule,
            "level": "error",
            "kind": "fail",
            "message": {"text": " ".join(parts)},
            "partialFingerprints": {_FINGERPRINT: occurrence.fingerprint},
            "occurrenceCount": occurrence.launches,
        }
        yield result | _locations(report, occurrence)


def _locations(report: Report, occurrence: Occurrence) -> Json:
    finding, subject = occurrence.finding, occurrence.subject
    located: Json = {}
    if occurrence.site is not None:
        side = finding.first if finding.first.site else finding.second
        located["locations"] = [_location(report, occurrence.site, side=side)]
    related: list[Json] = []
    for side in (finding.first, finding.second):
        if side.site is not None:
            related.append(_location(report, side.site, text.told(side), len(related), side=side))
            related += [
                _location(report, c, "called from here", len(related) + i) for i, c in enumerate(side.site.callers)
            ]
    if subject.origin is not None:
        related.append(_location(report, subject.origin, f"launch of {subject.name}", len(related)))
    if related:
        located["relatedLocations"] = related
    return located


def _allowed(report: Report) -> Iterator[Json]:
    why = {id(allowed.finding): allowed for subject in report.subjects for allowed in subject.allowed}
    occurrences = allowed_findings(report)
    for occurrence, result in zip(occurrences, _races(report, occurrences), strict=True):
        allowed = why[id(occurrence.finding)]
        suppression: Json = {"kind": "external" if allowed.comment is None else "inSource"}
        suppression["justification"] = text.why_allowed(report, allowed)
        yield result | {"suppressions": [suppression]}


def _gaps(report: Report) -> Iterator[Json]:
    for unanalysed in distinct_gaps(report):
        gap = unanalysed.gap
        yield {
            "ruleId": _GAP_RULE,
            "level": "none",
            "kind": "open",
            "message": {"text": f"{gap.kind}: {gap.reason} ({', '.join(unanalysed.subjects)})"},
            "locations": [_location(report, gap.site)] if gap.site else [],
        }


def _proofs(report: Report) -> Iterator[Json]:
    for subject in report.subjects:
        if subject.status is Status.OK and subject.claim is not None:
            assumed = ", ".join(subject.claim.qualifiers)
            yield {
                "ruleId": _PROOF_RULE,
                "level": "none",
                "kind": "pass",
                "message": {"text": f"{subject.name}: {subject.claim.scope}" + (f"; {assumed}" if assumed else "")},
                "locations": [_location(report, subject.site)] if subject.site else [],
            }


def _location(
    report: Report, site: Site, message: str = "", number: int | None = None, *, side: Side | None = None
) -> Json:
    """A place in a file; of a `side`, the region is as wide as what the text puts its caret under."""
    shown = report.path(site.file)
    inside = not PurePath(shown).is_absolute() and not shown.startswith("<")
    artifact: Json = {"uri": _quoted(shown), "uriBaseId": _ROOT} if inside else {"uri": _uri(site.file)}
    region: Json = {"startLine": max(site.line, 1)}
    if site.column:
        region["startColumn"] = site.column
    snippet = report.line(site)
    if snippet is not None:
        if site.column and side is not None and side.site == site:
            region["endColumn"] = site.column + caret(snippet, side)[1]
        region["snippet"] = {"text": snippet}
    location: Json = {"physicalLocation": {"artifactLocation": artifact, "region": region}}
    if number is not None:
        location["id"] = number
    if site.function:
        location["logicalLocations"] = [{"name": site.function, "kind": "function"}]
    if message:
        location["message"] = {"text": message}
    return location


def _invocation(report: Report) -> Json:
    invocation: Json = {"executionSuccessful": exits.status(report) not in (exits.INTERNAL_ERROR, exits.INTERRUPTED)}
    invocation["exitCode"] = exits.status(report)
    told = [*text.script_ending(report), *report.notes]
    if told:
        invocation["toolExecutionNotifications"] = [{"level": "warning", "message": {"text": line}} for line in told]
    return invocation


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else _quoted(file)


def _quoted(file: str) -> str:
    """A relative path as a URI, also of a name that is no text but bytes."""
    return quote(file, errors="surrogateescape")
