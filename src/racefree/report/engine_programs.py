"""Turns verdicts on engine programs, and on the cores of a logical core, into what a report shows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from racefree.access import Site
from racefree.engines.records import EngineAccess, EngineRace, EngineVerdict, MissingEdge
from racefree.report import rules
from racefree.report.addresses import arithmetic
from racefree.report.json_format import plain_data
from racefree.report.model import Claim, Finding, Gap, Side, Subject
from racefree.verdict import SourceLine, Status

KIND = "engine program"
_EDGES_SHOWN = 8


def subject(verdict: EngineVerdict, *, file: str, assumptions: tuple[str, ...] = ()) -> Subject:
    """One program of a file as a report subject; `assumptions` hold for the proof beside those of the verdict."""
    qualifiers = (*verdict.qualifiers, *assumptions)
    proved = verdict.status is Status.OK
    here = Site(str(Path(file).absolute()), 0)
    return Subject(
        kind=KIND,
        name=verdict.program,
        status=verdict.status,
        site=here,
        details=_details(verdict),
        findings=_findings(verdict),
        gaps=_gaps(verdict, here),
        claim=Claim("this-program", qualifiers, tuple(order.order for order in verdict.orders)) if proved else None,
        notes=_notes(verdict),
        seconds=verdict.seconds,
        records=plain_data(verdict),
        unlisted=sum(max(0, order.race_count - len(order.races)) for order in verdict.orders),
    )


def _findings(verdict: EngineVerdict) -> tuple[Finding, ...]:
    """Each racing pair once, with the orders under which it races."""
    orders: dict[tuple[Any, ...], list[str]] = {}
    races: dict[tuple[Any, ...], EngineRace] = {}
    for order in verdict.orders:
        for race in order.races:
            key = (
                race.first.instruction,
                race.second.instruction,
                race.race_type,
                race.distance,
                race.byte,
                race.partition,
            )
            races.setdefault(key, race)
            orders.setdefault(key, []).append(order.order)
    return tuple(_finding(race, orders[key]) for key, race in races.items())


def _finding(race: EngineRace, orders: list[str]) -> Finding:
    writes = race.first.write and race.second.write
    return Finding(
        rule=rules.ENGINE_WRITES if writes else rules.ENGINE_READ_WRITE,
        race_type=race.race_type,
        first=_side(race, race.first),
        second=_side(race, race.second),
        reason=race.reason,
        hint=_hint(race),
        config=f"by {' and by '.join(orders)}",
    )


def _side(race: EngineRace, access: EngineAccess) -> Side:
    detail = [f"in {access.block}"] if access.block else []
    if race.distance and access is race.second:
        detail.append(f"{race.distance} iterations later")
    if access.clock:
        detail.append(f"clock {access.clock}")
    queue = f", queue {access.queue}" if access.queue else ""
    return Side(
        operation=f"{access.opcode} {'write' if access.write else 'read'}",
        writes=access.write,
        actor=f"{access.name} on {access.engine}{queue}",
        place=_place(race, access),
        site=_site(access.source),
        detail=", ".join(detail),
        arithmetic=arithmetic(access.reached_byte, access.reached_partition),
    )


def _place(race: EngineRace, access: EngineAccess) -> str:
    at = [] if race.partition is None else [f"partition {race.partition}"]
    at += [] if race.bank is None else [f"bank {race.bank}"]
    at += [] if race.byte is None else [f"byte {race.byte}"]
    return f"{access.buffer} ({', '.join([access.memory, *at])})"


def _hint(race: EngineRace) -> str:
    if race.queue_order_only:
        return "only a queue that completes in order would separate them: wait for the completion of the first transfer"
    return f"let {race.second.engine} wait for {race.first.name} to complete before {race.second.name} starts"


def _gaps(verdict: EngineVerdict, here: Site) -> tuple[Gap, ...]:
    gaps = [
        Gap(refusal.kind, refusal.reason, refusal.source or here, f"by {order.order}")
        for order in verdict.orders
        for refusal in order.refusals
    ]
    for order in verdict.orders:
        for race in order.possible[:1]:
            reason = (
                f"{order.possible_count} pairs race if addresses that only run time knows meet, "
                f"the first {race.first.name} and {race.second.name}"
            )
            gaps.append(Gap("possible-race", reason, _site(race.first.source) or here, f"by {order.order}"))
    return tuple(dict.fromkeys(gaps))


def _details(verdict: EngineVerdict) -> tuple[str, ...]:
    lines = [f"{verdict.instructions} instructions on {len(verdict.engines)} engines: {', '.join(verdict.engines)}"]
    for order in verdict.orders:
        if order.missing_edges:
            lines.append(f"clean by {order.order} with these waits added: {_edges(order.missing_edges)}")
    return tuple(lines)


def _edges(edges: Iterable[MissingEdge]) -> str:
    said = [
        f"{e.target} waits for {e.source}" + (f" of {e.distance} iterations before" if e.distance else "")
        for e in edges
    ]
    more = f" and {len(said) - _EDGES_SHOWN} more" if len(said) > _EDGES_SHOWN else ""
    return "; ".join(said[:_EDGES_SHOWN]) + more


def _notes(verdict: EngineVerdict) -> tuple[str, ...]:
    notes = list(verdict.notes)
    for order in verdict.orders:
        if order.race_count > len(order.races):
            notes.append(f"{order.race_count} pairs race by {order.order}, {len(order.races)} of them are shown")
        if order.excused:
            notes.append(f"{len(order.excused)} reads are marked as allowed to see memory that nothing wrote")
    notes += [f"{d.kind} at {d.instruction}: {d.message}" for d in verdict.disagreements]
    return tuple(notes)


def _site(source: SourceLine | None) -> Site | None:
    return None if source is None else Site(source[0], source[1], 0, source[2])
