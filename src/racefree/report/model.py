"""What every output format renders: findings, gaps and proofs, the same for launches and for engine programs.

All of it is plain data that survives JSON, so that a saved report can be rendered again in any format, on any machine.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import Enum
from os.path import join, normpath
from pathlib import PurePath
from typing import Any

from racefree.access import Site
from racefree.verdict import Status


@dataclass(frozen=True, slots=True)
class Side:
    """One access of a race. `actor` is who does it (`program (1, 0, 0)`), `place` the memory it meets the other on.

    `arithmetic` says how it got there: equal expressions, from the formula to its value, for each coordinate of the place.
    """

    operation: str
    writes: bool
    actor: str
    place: str
    site: Site | None
    detail: str = ""
    arithmetic: str = ""


@dataclass(frozen=True, slots=True)
class Finding:
    """One race. `rule` is a key of `rules.RULES`; `race_type` is "WAW", "RAW" or "WAR"."""

    rule: str
    race_type: str
    first: Side
    second: Side
    reason: str
    hint: str = ""
    config: str = ""

    @property
    def site(self) -> Site | None:
        return self.first.site or self.second.site


@dataclass(frozen=True, slots=True)
class Allowed:
    """A race that somebody decided to live with, and why: by a `comment` in the source, or else by a baseline file."""

    finding: Finding
    reason: str
    comment: Site | None = None


@dataclass(frozen=True, slots=True)
class Gap:
    """A part that was not analysed, so that nothing is claimed about it."""

    kind: str
    reason: str
    site: Site | None
    config: str = ""


@dataclass(frozen=True, slots=True)
class Claim:
    """What was proved, for which launches it holds, and what it assumes."""

    scope: str
    qualifiers: tuple[str, ...]
    rungs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Subject:
    """One thing that was checked: a launch of a kernel, or an engine program.

    `details` are lines of context (grid, arguments, where it was launched); `records` is the full verdict as JSON-ready data.
    `fragile` are races of other grids than the one launched: evidence, never races of this launch. `allowed` are races set
    aside, which `findings` has no more; `unlisted` counts those beyond the ones listed.
    """

    kind: str
    name: str
    status: Status
    site: Site | None = None
    origin: Site | None = None
    details: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    fragile: tuple[Finding, ...] = ()
    gaps: tuple[Gap, ...] = ()
    claim: Claim | None = None
    notes: tuple[str, ...] = ()
    memory_model: str = ""
    seconds: float = 0.0
    repeats: int = 1
    records: dict[str, Any] = field(default_factory=dict)
    allowed: tuple[Allowed, ...] = ()
    unlisted: int = 0

    @property
    def standing(self) -> Status | None:
        """The status that counts. None when every race is allowed and nothing else stands against the subject."""
        if self.status is not Status.RACES or self.findings or self.unlisted or not self.allowed:
            return self.status
        if self.gaps:
            return Status.VACUOUS if all(gap.kind == Status.VACUOUS.value for gap in self.gaps) else Status.UNSUPPORTED
        return None


class Ending(str, Enum):
    """How the user's script came to its end."""

    FINISHED = "finished"
    EXITED = "exited"
    RAISED = "raised"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class Script:
    """The script whose launches were taken, and its own end: `text` says it in words when it did not simply finish."""

    path: str
    ending: Ending
    text: str = ""
    traceback: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """Everything one run found. `sources` holds the source lines that the sites name, by file and line number.

    `root` is the folder that paths are shown relative to.
    """

    version: str
    root: str
    subjects: tuple[Subject, ...]
    script: Script | None = None
    notes: tuple[str, ...] = ()
    sources: dict[str, dict[int, str]] = field(default_factory=dict)
    seconds: float = 0.0

    def line(self, site: Site | None) -> str | None:
        """The source line of a site, without its newline, or None when its file could not be read."""
        return None if site is None else self.sources.get(site.file, {}).get(site.line)

    def path(self, file: str) -> str:
        """A file name as it is shown: relative to `root` when inside it, with forward slashes."""
        path = PurePath(file)
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else path.as_posix()

    def place(self, site: Site | None) -> str:
        """`file:line:column`, as much of it as is known: a site of line 0 is a whole file."""
        if site is None:
            return "<unknown>"
        line = f":{site.line}" if site.line else ""
        column = f":{site.column}" if site.line and site.column else ""
        return f"{self.path(site.file)}{line}{column}"


@dataclass(frozen=True, slots=True)
class Counts:
    """The figures of the summary line. `races` and `allowed` count findings, the others count subjects with repeats."""

    launches: int
    programs: int
    proved: int
    racing: int
    races: int
    not_analysed: int
    vacuous: int
    allowed: int = 0


def count(report: Report) -> Counts:
    def of(status: Status) -> int:
        return sum(s.repeats for s in report.subjects if s.standing is status)

    launches = sum(s.repeats for s in report.subjects if s.kind == "launch")
    return Counts(
        launches=launches,
        programs=sum(s.repeats for s in report.subjects) - launches,
        proved=of(Status.OK),
        racing=of(Status.RACES),
        races=len(distinct_findings(report)),
        not_analysed=of(Status.UNSUPPORTED),
        vacuous=of(Status.VACUOUS),
        allowed=len(allowed_findings(report)),
    )


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A finding with the first subject that shows it, and how many launches show it."""

    finding: Finding
    subject: Subject
    launches: int
    fingerprint: str

    @property
    def site(self) -> Site | None:
        """Where to point at: the first access, or the subject when its accesses have no source."""
        return self.finding.site or self.subject.site


def distinct_findings(report: Report, *, root: str | None = None) -> tuple[Occurrence, ...]:
    """Every race once: findings of one rule between the same two source lines of one kernel are one.

    Fingerprints name paths as seen from the folder `root`, which is that of the report if not given.
    """
    return _distinct(report, ((subject, subject.findings) for subject in report.subjects), root)


def allowed_findings(report: Report) -> tuple[Occurrence, ...]:
    """Every race that was set aside, once, as `distinct_findings` counts them."""
    return _distinct(report, ((s, tuple(allowed.finding for allowed in s.allowed)) for s in report.subjects), None)


def _distinct(
    report: Report, found: Iterable[tuple[Subject, tuple[Finding, ...]]], root: str | None
) -> tuple[Occurrence, ...]:
    seen: dict[tuple[Any, ...], Occurrence] = {}
    for subject, findings in found:
        counted: set[tuple[Any, ...]] = set()
        for finding in findings:
            name = fingerprint(report, subject, finding, root=root)
            key = occurrence_key(finding, name)
            known = seen.get(key)
            if known is None:
                seen[key] = Occurrence(finding, subject, subject.repeats, name)
            elif key not in counted:
                seen[key] = replace(known, launches=known.launches + subject.repeats)
            counted.add(key)
    return tuple(sorted(seen.values(), key=lambda o: (site_key(o.site), o.finding.rule, o.fingerprint)))


def occurrence_key(finding: Finding, fingerprint: str) -> tuple[Any, ...]:
    """Findings with equal keys are one race: the same fingerprint, at the same two places."""
    return (fingerprint, site_key(finding.first.site), site_key(finding.second.site))


@dataclass(frozen=True, slots=True)
class NotAnalysed:
    """A gap with the kernels it was met in, once per site."""

    gap: Gap
    subjects: tuple[str, ...]
    launches: int


def distinct_gaps(report: Report) -> tuple[NotAnalysed, ...]:
    """Every part that was not analysed, once per site and kind."""
    seen: dict[tuple[Any, ...], NotAnalysed] = {}
    for subject in report.subjects:
        counted: set[tuple[Any, ...]] = set()
        for gap in subject.gaps:
            key = (site_key(gap.site), gap.kind, subject.name if gap.site is None else "")
            known = seen.get(key)
            if known is None:
                seen[key] = NotAnalysed(gap, (subject.name,), subject.repeats)
            elif key not in counted:
                names = tuple(sorted({*known.subjects, subject.name}))
                seen[key] = replace(known, subjects=names, launches=known.launches + subject.repeats)
            counted.add(key)
    return tuple(seen[key] for key in sorted(seen))


def fingerprint(report: Report, subject: Subject, finding: Finding, *, root: str | None = None) -> str:
    """An identity that survives edits elsewhere in the file: rule, path, kernel and source text, no line numbers."""
    parts = [finding.rule, subject.name]
    for side in (finding.first, finding.second):
        parts += [
            identity_path(report, side.site.file, root) if side.site else "",
            (report.line(side.site) or "").strip(),
            side.operation,
        ]
        if report.line(side.site) is None and side.site is not None:
            parts.append(str(side.site.line))
        for caller in side.site.callers if side.site else ():
            parts += [identity_path(report, caller.file, root), (report.line(caller) or "").strip()]
        if side.site is None or subject.kind != "launch":
            parts.append(side.actor)
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:20]


def identity_path(report: Report, file: str, root: str | None = None) -> str:
    """A file name as seen from the folder `root` (that of the report if None), whichever way the run was given it."""
    start = report.root if root is None else root
    path = PurePath(normpath(join(report.root, file)))
    return path.relative_to(start).as_posix() if path.is_relative_to(start) else path.as_posix()


def site_key(site: Site | None) -> tuple[str, int, int]:
    return ("", 0, 0) if site is None else (site.file, site.line, site.column)


def sites_of(subjects: Iterable[Subject]) -> tuple[Site, ...]:
    """Every site that a report on these subjects may show, callers included."""
    sites: list[Site] = []
    for subject in subjects:
        found = [subject.site, subject.origin, *(g.site for g in subject.gaps)]
        for finding in (*subject.findings, *subject.fragile, *(allowed.finding for allowed in subject.allowed)):
            found += [finding.first.site, finding.second.site]
        for site in found:
            if site is not None:
                sites += [site, *site.callers]
    return tuple(sites)
