"""Turns an analysed launch into what a report shows: which rule each race breaks, and what would mend it."""

from __future__ import annotations

from typing import Any

from racefree.access import Site
from racefree.launch import Launch
from racefree.report import rules
from racefree.report.model import Claim, Finding, Gap, Side, Subject
from racefree.verdict import CompiledRaceRecord, RaceAccess, RaceConfigVerdict, Replay, ReplayOutcome, Status


def subject(launch: Launch, *, records: dict[str, Any], repeats: int = 1) -> Subject:
    """The launch as a report subject; `records` is its full verdict as JSON-ready data."""
    verdict = launch.verdict
    proved = verdict.status is Status.OK and verdict.scope is not None
    return Subject(
        kind="launch",
        name=launch.kernel,
        status=verdict.status,
        site=launch.site,
        origin=launch.launch_site,
        details=_details(launch),
        findings=tuple(_finding(record) for record in launch.races),
        fragile=tuple(_finding(record) for config in verdict.configs for record in config.grid_fragile),
        gaps=tuple(_gap(launch, c) for c in verdict.configs if c.status in (Status.UNSUPPORTED, Status.VACUOUS)),
        claim=Claim(verdict.scope.value, verdict.qualifiers, _rungs(launch)) if proved and verdict.scope else None,
        notes=(*verdict.notes, *_not_replayed(launch)),
        memory_model=verdict.memory_model,
        seconds=verdict.seconds,
        repeats=repeats,
        records=records,
    )


def rule_of(record: CompiledRaceRecord) -> str:
    """The rule that a race of a launch breaks."""
    first, second = record.first, record.second
    if first.atomic and second.atomic:
        return rules.ATOMICS_APART
    if first.atomic or second.atomic:
        return rules.ATOMIC_AND_PLAIN
    inside = record.programs[0] == record.programs[1]
    if first.write and second.write:
        return rules.INSIDE_WRITES if inside else rules.BETWEEN_WRITES
    return rules.INSIDE_READ_WRITE if inside else rules.BETWEEN_READ_WRITE


def _finding(record: CompiledRaceRecord) -> Finding:
    first, second = (_side(a, p) for a, p in zip((record.first, record.second), record.programs, strict=True))
    return Finding(
        rule=rule_of(record),
        race_type=record.race_type,
        first=first,
        second=second,
        reason=record.reason,
        hint=record.hint,
        config=config_text(record.config),
    )


def _side(access: RaceAccess, program: tuple[int, int, int]) -> Side:
    detail = []
    if access.lane:
        detail.append(f"lane {_index(access.lane)}")
    if access.iterations:
        detail.append(f"iteration {_index(access.iterations)}")
    return Side(
        operation=access.op,
        writes=access.write,
        actor=f"program {program}",
        place=place_of(access),
        site=site_of(access),
        detail=", ".join(detail),
        arithmetic=access.arithmetic,
    )


def place_of(access: RaceAccess) -> str:
    """The element of an argument, or the address of what a pointer leads to that came from no argument."""
    if access.tensor or access.address_bytes is None:
        return f"{access.tensor or '?'}[{'?' if access.element is None else access.element}]"
    return f"memory at {access.address_bytes:#x}"


def site_of(access: RaceAccess) -> Site:
    """Where an access of a record stands."""
    file, line, function = access.source
    return Site(file, line, access.column, function, access.callers)


def _gap(launch: Launch, config: RaceConfigVerdict) -> Gap:
    text = config_text(config.config)
    if config.refusal is None:
        return Gap("vacuous", "nothing can execute under the premises, so nothing is claimed", launch.site, text)
    return Gap(config.refusal.kind, config.refusal.reason, config.refusal.source or launch.site, text)


def _details(launch: Launch) -> tuple[str, ...]:
    lines = []
    if launch.grid is not None:
        lines.append(f"grid {launch.grid}, target {launch.target}")
    if launch.arguments:
        lines.append("; ".join(f"{argument.name}: {argument.text}" for argument in launch.arguments))
    agreeing = [r.programs for r in _replays(launch) if r.outcome is ReplayOutcome.AGREES]
    if agreeing:
        lines.append(f"a run of {max(agreeing)} program instances in Triton's interpreter agrees")
    return tuple(lines)


def _replays(launch: Launch) -> tuple[Replay, ...]:
    return tuple(config.replay for config in launch.verdict.configs if config.replay is not None)


def _not_replayed(launch: Launch) -> tuple[str, ...]:
    """What was not checked by a run, once for each reason."""
    reasons = [r.reason for r in _replays(launch) if r.outcome is ReplayOutcome.NOT_REPLAYED]
    return tuple(f"not replayed: {reason}" for reason in dict.fromkeys(reasons))


def _rungs(launch: Launch) -> tuple[str, ...]:
    return tuple(sorted({config.rung for config in launch.verdict.configs if config.rung}))


def _index(position: tuple[int, ...]) -> str:
    return str(position[0]) if len(position) == 1 else str(position)


def config_text(config: dict[str, Any]) -> str:
    """Config kwargs as `BLOCK=32, num_warps=4`."""
    return ", ".join(f"{name}={value}" for name, value in config.items())
