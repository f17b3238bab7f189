"""Decides engine programs: BIR files, several of which may be the cores of one logical core."""

from __future__ import annotations

from collections.abc import Sequence

from racefree.errors import InputError
from racefree.frontends import Found, Request


def check(requests: Sequence[Request], found: Found) -> None:
    """All files of one run together. Raises InputError when a single one cannot be read; of several, it is noted."""
    from racefree.neuron.check import check_files
    from racefree.report.engine_programs import subject
    from racefree.report.logical_cores import subjects

    paths = [str(request.path) for request in requests]
    verdict = check_files(paths, order=requests[0].order)
    for file in verdict.files:
        for program in file.programs:
            found.subjects.append(subject(program, file=file.path, assumptions=verdict.assumptions))
    for cores in verdict.cores:
        found.subjects += subjects(cores, assumptions=verdict.assumptions)
    if not any(file.programs for file in verdict.files):
        raise InputError(f"{', '.join(paths)}: no function to check")
