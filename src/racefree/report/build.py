"""Puts a report together: equal launches counted as one subject, and the source lines the sites name."""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Sequence
from typing import Any

import racefree
from racefree.launch import Launch
from racefree.report import launches as from_launch
from racefree.report.allowances import by_comments
from racefree.report.json_format import plain_data
from racefree.report.model import Report, Script, Subject, sites_of

_AROUND = 3
"""Source lines kept on either side of each line that a report names."""


def of_launches(launches: Sequence[Launch], **rest: Any) -> Report:
    """A report on launches; launches that share a verdict, a kernel and a place are one subject."""
    return of_subjects(launch_subjects(launches), **rest)


def launch_subjects(launches: Sequence[Launch]) -> tuple[Subject, ...]:
    groups: dict[tuple[Any, ...], list[Launch]] = {}
    for launch in launches:
        key = (id(launch.verdict), launch.kernel, launch.site, launch.launch_site, launch.arguments)
        groups.setdefault(key, []).append(launch)
    return tuple(
        from_launch.subject(group[0], records=plain_data(group[0]), repeats=len(group)) for group in groups.values()
    )


def of_subjects(
    subjects: Iterable[Subject],
    *,
    script: Script | None = None,
    notes: Iterable[str] = (),
    seconds: float = 0.0,
    root: str | None = None,
) -> Report:
    """A report on any subjects, with the source lines it shows read from disk now, and what they allow set aside."""
    given = tuple(subjects)
    sources = _sources(given)
    found = by_comments(given, sources)
    return Report(
        version=racefree.__version__,
        root=root or os.getcwd(),
        subjects=found,
        script=script,
        notes=tuple(dict.fromkeys(notes)),
        sources=sources,
        seconds=seconds,
    )


def _sources(subjects: Sequence[Subject]) -> dict[str, dict[int, str]]:
    kept: dict[str, dict[int, str]] = {}
    for site in sites_of(subjects):
        lines = linecache.getlines(site.file)
        first, last = max(1, site.line - _AROUND), min(len(lines), site.line + _AROUND)
        for number in range(first, last + 1):
            kept.setdefault(site.file, {})[number] = lines[number - 1].rstrip("\r\n")
    return {file: dict(sorted(kept[file].items())) for file in sorted(kept)}
