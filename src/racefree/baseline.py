"""A baseline file: races that were known when it was written, which a later run does not report again.

A race is known by its fingerprint (rule, path, kernel and source text) and never by a line number. Paths are those seen from
the folder of the file, so that runs from any folder agree.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from racefree.errors import InputError
from racefree.report.model import (
    Allowed,
    Finding,
    Report,
    Subject,
    distinct_findings,
    fingerprint,
    identity_path,
    occurrence_key,
)
from racefree.verdict import Status

KIND = "racefree-baseline"
SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Known:
    """`count` races of one fingerprint. The rest says in words which they are, for people and for telling stale ones."""

    fingerprint: str
    count: int
    rule: str
    kernel: str
    path: str
    source: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Baseline:
    """`path` is the file that the races were read from or are written to."""

    path: Path
    races: tuple[Known, ...]

    @property
    def root(self) -> str:
        return _folder(self.path)


def _folder(path: Path) -> str:
    return os.path.dirname(os.path.abspath(path))


def read(path: Path) -> Baseline:
    """Raises InputError when the file is missing, damaged, or of another schema."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(f"cannot read the baseline {path}: {error}") from error
    if not isinstance(document, dict) or document.get("kind") != KIND or document.get("schema") != SCHEMA:
        raise InputError(f"{path} is no baseline of this version of racefree; write it with --write-baseline")
    try:
        return Baseline(path, tuple(_known(path, entry) for entry in document["races"]))
    except (KeyError, TypeError) as error:
        raise InputError(f"the baseline {path} is damaged: {error!r}") from error


def _known(path: Path, entry: Any) -> Known:
    count = entry["count"]
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"the baseline {path} is damaged: count {count!r}")
    return Known(
        fingerprint=str(entry["fingerprint"]),
        count=count,
        rule=str(entry["rule"]),
        kernel=str(entry["kernel"]),
        path=str(entry["path"]),
        source=tuple(map(str, entry["source"])),
    )


def of_report(report: Report, path: Path) -> Baseline:
    """The races that the report still counts, as a baseline to be written to `path`."""
    root = _folder(path)
    occurrences = distinct_findings(report, root=root)
    counts = Counter(occurrence.fingerprint for occurrence in occurrences)
    first = {occurrence.fingerprint: occurrence for occurrence in reversed(occurrences)}
    races = [
        Known(
            fingerprint=name,
            count=counts[name],
            rule=occurrence.finding.rule,
            kernel=occurrence.subject.name,
            path=_path(report, occurrence.subject, root),
            source=_source(report, occurrence.finding),
        )
        for name, occurrence in first.items()
    ]
    return Baseline(path, tuple(sorted(races, key=lambda k: (k.path, k.kernel, k.rule, k.fingerprint))))


def write(baseline: Baseline) -> None:
    """Raises InputError when the file cannot be written."""
    races = [
        {
            "fingerprint": known.fingerprint,
            "count": known.count,
            "rule": known.rule,
            "kernel": known.kernel,
            "path": known.path,
            "source": list(known.source),
        }
        for known in baseline.races
    ]
    try:
        text = json.dumps({"kind": KIND, "schema": SCHEMA, "races": races}, indent=1)
        baseline.path.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {baseline.path}: {error.strerror or error}") from error


def applied(report: Report, baseline: Baseline) -> Report:
    """The report with known races set aside, and a note for each of them that this run shows to be gone."""
    counts = {known.fingerprint: known.count for known in baseline.races}
    allowed: set[tuple[Any, ...]] = set()
    met: Counter[str] = Counter()
    for occurrence in distinct_findings(report, root=baseline.root):
        met[occurrence.fingerprint] += 1
        if met[occurrence.fingerprint] <= counts.get(occurrence.fingerprint, 0):
            allowed.add(occurrence_key(occurrence.finding, occurrence.fingerprint))
    subjects = tuple(_set_aside(report, subject, allowed, baseline) for subject in report.subjects)
    stale = _stale(report, baseline, met)
    return replace(report, subjects=subjects, notes=(*report.notes, *stale))


def _set_aside(report: Report, subject: Subject, allowed: set[tuple[Any, ...]], baseline: Baseline) -> Subject:
    def known(finding: Finding) -> bool:
        return occurrence_key(finding, fingerprint(report, subject, finding, root=baseline.root)) in allowed

    aside = tuple(Allowed(f, f"known in {baseline.path.name}") for f in subject.findings if known(f))
    kept = tuple(f for f in subject.findings if not known(f))
    return replace(subject, findings=kept, allowed=(*subject.allowed, *aside)) if aside else subject


def _stale(report: Report, baseline: Baseline, met: Counter[str]) -> list[str]:
    """Only kernels and programs of this run whose every launch was decided are judged."""
    decided: dict[tuple[str, str], bool] = {}
    for subject in report.subjects:
        key = (_path(report, subject, baseline.root), subject.name)
        closed = not subject.gaps and not subject.unlisted and subject.status in (Status.OK, Status.RACES)
        decided[key] = decided.get(key, True) and closed
    told = []
    for known in baseline.races:
        left = met[known.fingerprint]
        if left < known.count and decided.get((known.path, known.kernel), False):
            still = f"{left} of {known.count} are left" if left else "not met in this run"
            told.append(f"{baseline.path.name}: stale: {known.rule} in {known.kernel} ({known.path}): {still}")
    return told


def _path(report: Report, subject: Subject, root: str) -> str:
    return identity_path(report, subject.site.file, root) if subject.site is not None else ""


def _source(report: Report, finding: Finding) -> tuple[str, ...]:
    lines = [(report.line(side.site) or side.operation).strip() for side in (finding.first, finding.second)]
    return tuple(dict.fromkeys(lines))
