"""Decides Ethos-U command streams, as driver payloads."""

from __future__ import annotations

from racefree.frontends import Found, Request


def check(request: Request, found: Found) -> None:
    """One payload. Raises InputError when it cannot be read."""
    from racefree.engines.check import Options
    from racefree.engines.order import QueueOrder
    from racefree.ethosu.check import PIPELINE_IN_ORDER, REGIONS_APART, check_file
    from racefree.report.engine_programs import subject

    if request.replays is not None:
        found.notes.append(f"{request.path} was not replayed: Triton's interpreter runs no command streams")
    options = Options(queue_order=QueueOrder(request.queues), first_only=not request.all_races)
    verdict = check_file(request.path, options=options)
    found.subjects.append(subject(verdict, file=str(request.path), assumptions=(PIPELINE_IN_ORDER, REGIONS_APART)))
