"""Turns the verdict on the cores of a logical core into what a report shows."""

from __future__ import annotations

from pathlib import Path

from racefree.access import Site
from racefree.neuron.check import CoresVerdict
from racefree.neuron.lnc import CoreAccess, CoreRace, CoreVerdict
from racefree.report import rules
from racefree.report.addresses import arithmetic
from racefree.report.json_format import plain_data
from racefree.report.model import Claim, Finding, Gap, Side, Subject
from racefree.verdict import Status

KIND = "logical core"


def subjects(cores: CoresVerdict, *, assumptions: tuple[str, ...] = ()) -> tuple[Subject, ...]:
    """One subject a function and order, and one for the structural rules when some are broken."""
    found = [_subject(verdict, cores, assumptions) for verdict in cores.functions]
    if cores.violations:
        here = _here(cores)
        gaps = tuple(Gap(f"illegal-{v.code}", f"{v.function}: {v.message}", here) for v in cores.violations)
        found.append(Subject(KIND, " + ".join(cores.paths), Status.UNSUPPORTED, here, gaps=gaps))
    return tuple(found)


def _subject(verdict: CoreVerdict, cores: CoresVerdict, assumptions: tuple[str, ...]) -> Subject:
    legal = not cores.violations
    status = Status.UNSUPPORTED if verdict.status is Status.OK and not legal else verdict.status
    gaps = [
        Gap(refusal.kind, refusal.reason, refusal.source or _here(cores), f"by {verdict.order}")
        for refusal in verdict.refusals
    ]
    if status is not verdict.status:
        gaps.append(
            Gap("illegal-core", "the programs break rules of a logical core, so nothing is claimed", _here(cores))
        )
    return Subject(
        kind=KIND,
        name=f"{verdict.function} of {' + '.join(cores.paths)}",
        status=status,
        site=_here(cores),
        details=(f"by {verdict.order}",),
        findings=tuple(_finding(race, verdict.order) for race in verdict.races),
        gaps=tuple(gaps),
        claim=Claim("this-program", assumptions, (verdict.order,)) if status is Status.OK else None,
        records=plain_data(verdict),
    )


def _here(cores: CoresVerdict) -> Site:
    return Site(str(Path(cores.paths[0]).absolute()), 0)


def _finding(race: CoreRace, order: str) -> Finding:
    return Finding(
        rule=rules.CORES_APART,
        race_type=race.race_type,
        first=_side(race.first),
        second=_side(race.second),
        reason=race.reason,
        hint="put a core barrier between the two accesses on both cores",
        config=f"by {order}",
    )


def _side(access: CoreAccess) -> Side:
    return Side(
        operation=f"{access.opcode} {'write' if access.write else 'read'}",
        writes=access.write,
        actor=f"{access.name} on {access.engine} of core {access.core}",
        place=access.buffer,
        site=access.site,
        arithmetic=arithmetic(access.reached_byte, access.reached_partition),
    )
