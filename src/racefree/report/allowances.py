"""Sets races aside that somebody decided to live with, and tells comments that allow nothing."""

from __future__ import annotations

import linecache
from collections.abc import Iterable, Mapping
from dataclasses import replace

from racefree import allow
from racefree.access import Site
from racefree.report.model import Allowed, Finding, Report, Subject
from racefree.report.rules import RULES
from racefree.verdict import Status

Lines = Mapping[str, Mapping[int, str]]


def by_comments(subjects: Iterable[Subject], sources: Lines) -> tuple[Subject, ...]:
    """The subjects with each race that a comment beside one of its accesses, or beside a call of it, allows set aside."""
    return tuple(_by_comments(subject, sources) if subject.findings else subject for subject in subjects)


def _by_comments(subject: Subject, sources: Lines) -> Subject:
    kept: list[Finding] = []
    aside: list[Allowed] = []
    for finding in subject.findings:
        found = _comment(finding, sources)
        if found is None:
            kept.append(finding)
        else:
            aside.append(found)
    return replace(subject, findings=tuple(kept), allowed=(*subject.allowed, *aside)) if aside else subject


def _comment(finding: Finding, sources: Lines) -> Allowed | None:
    sites = [side.site for side in (finding.first, finding.second) if side.site is not None]
    for site in (*sites, *(caller for accessed in sites for caller in accessed.callers)):
        for allowance in allow.of_statement(sources.get(site.file, {}), site.line, RULES):
            if finding.rule in allowance.rules:
                return Allowed(finding, allowance.reason, Site(site.file, allowance.line))
    return None


def stale_comments(report: Report) -> tuple[str, ...]:
    """One line for each comment that allows nothing: it is malformed, or no race was left for it to allow.

    Only comments inside kernels that this run has decided completely are judged.
    """
    used = {(a.comment.file, a.comment.line) for s in report.subjects for a in s.allowed if a.comment is not None}
    told: list[str] = []
    for file, (all_heads, decided) in _kernels(report).items():
        lines = linecache.getlines(file)
        for found in allow.in_functions(lines, all_heads, RULES):
            if found.problem:
                told.append(f"{report.path(file)}:{found.line}: comment for racefree: {found.problem}")
        for found in allow.in_functions(lines, decided, RULES):
            if not found.problem and (file, found.line) not in used:
                rules = ", ".join(found.rules)
                told.append(
                    f"{report.path(file)}:{found.line}: stale comment: allow[{rules}] allows no race of this run"
                )
    return tuple(told)


def _kernels(report: Report) -> dict[str, tuple[list[int], list[int]]]:
    """By file: the lines of the kernels launched, and those of them of which every launch was decided."""
    launches = [(s, s.site) for s in report.subjects if s.kind == "launch" and s.site is not None and s.site.line]
    undecided = {
        (site.file, site.line) for s, site in launches if s.gaps or s.status in (Status.UNSUPPORTED, Status.VACUOUS)
    }
    heads: dict[str, tuple[list[int], list[int]]] = {}
    for file, line in sorted({(site.file, site.line) for _, site in launches}):
        every, decided = heads.setdefault(file, ([], []))
        every.append(line)
        if (file, line) not in undecided:
            decided.append(line)
    return heads
