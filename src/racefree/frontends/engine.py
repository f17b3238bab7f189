"""Decides engine programs: BIR files, several of which may be the cores of one logical core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from racefree.errors import InputError
from racefree.frontends import Found, Request

if TYPE_CHECKING:
    from racefree.neuron.check import FileVerdict


def check(requests: Sequence[Request], found: Found) -> None:
    """All files of one run together. Raises InputError for those that cannot be read once the others have been decided."""
    from racefree.engines.order import QueueOrder
    from racefree.neuron.check import check_files
    from racefree.report.engine_programs import subject
    from racefree.report.logical_cores import subjects

    paths = [str(request.path) for request in requests]
    asked = requests[0]
    if asked.replays is not None:
        found.notes.append("engine programs were not replayed: they have no kernel that Triton's interpreter could run")
    found.begin(paths[0] if len(paths) == 1 else f"{len(paths)} engine programs")
    verdict = check_files(
        paths,
        order=asked.order,
        all_races=asked.all_races,
        queue_order=QueueOrder(asked.queues),
        compiler_exemptions=asked.compiler_exemptions,
        keep_going=len(paths) > 1,
    )
    for file in verdict.files:
        drawn = _timelines(file) if requests[0].draws == "all" else {}
        for program in file.programs:
            made = subject(program, file=file.path, assumptions=verdict.assumptions)
            found.subjects.append(replace(made, records=made.records | {"timeline": drawn.get(program.program)}))
    for cores in verdict.cores:
        found.subjects += subjects(cores, assumptions=verdict.assumptions)
    if verdict.unread:
        raise InputError("; ".join(verdict.unread))
    if not any(file.programs for file in verdict.files):
        raise InputError(f"{', '.join(paths)}: no function to check")


def _timelines(file: FileVerdict) -> dict[str, Any]:
    from racefree.neuron.lowering import lower_all
    from racefree.neuron.reading import load
    from racefree.report.engine_timeline import timeline

    verdicts = {verdict.program: verdict for verdict in file.programs}
    programs = {program.name: program for program in lower_all(load(file.path))}
    return {name: timeline(programs[name], verdict) for name, verdict in verdicts.items() if name in programs}
