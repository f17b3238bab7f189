"""Decides Ethos-U command streams, as driver payloads."""

from __future__ import annotations

from racefree.frontends import Found, Request


def check(request: Request, found: Found) -> None:
    """One payload. Raises InputError when it cannot be read."""
    from racefree.engines.check import Options
    from racefree.ethosu.check import PIPELINE_IN_ORDER, REGIONS_APART, check_file
    from racefree.report.engine_programs import subject

    verdict = check_file(request.path, options=Options(first_only=not request.all_races))
    found.subjects.append(subject(verdict, file=str(request.path), assumptions=(PIPELINE_IN_ORDER, REGIONS_APART)))
