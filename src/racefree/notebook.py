"""A launch, a verdict and a race as HTML for a notebook: self-contained, small, and readable on light and dark pages."""

from __future__ import annotations

import linecache
from html import escape

from racefree.launch import Launch
from racefree.report.launches import config_text, place_of, rule_of
from racefree.report.rules import RULES
from racefree.verdict import CompiledRaceRecord, RaceAccess, RaceConfigVerdict, RaceVerdict, SourceLine, Status

_RACES_SHOWN = 10

# All else is in the colours of the page; these stand out from white and from black alike, whichever the page is.
_COLOURS = {
    Status.OK: "#1f883d",
    Status.RACES: "#d93025",
    Status.UNSUPPORTED: "#9a6700",
    Status.VACUOUS: "#6e7781",
}
_CODE = "margin:.3em 0;white-space:pre-wrap;background:transparent;color:inherit;font-size:.95em"
_FAINT = "opacity:.75"


def of_launch(launch: Launch) -> str:
    """What was launched, then its verdict and its races."""
    where = f" {_place((launch.site.file, launch.site.line, ''))}" if launch.site is not None else ""
    facts = [] if launch.grid is None else [f"grid {launch.grid}, target {launch.target}"]
    if launch.arguments:
        facts.append("; ".join(f"{argument.name}: {argument.text}" for argument in launch.arguments))
    head = f"<div><b>{escape(launch.kernel)}</b><span style='{_FAINT}'>{where}</span></div>"
    lines = "".join(f"<div style='{_FAINT}'>{escape(fact)}</div>" for fact in facts)
    return _boxed(launch.verdict.status, head + lines + _verdict(launch.verdict))


def of_verdict(verdict: RaceVerdict) -> str:
    """The status with what it holds for and assumes, what was not analysed, and the races."""
    return _boxed(verdict.status, _verdict(verdict))


def of_race(record: CompiledRaceRecord) -> str:
    """The rule, both accesses with their source lines, why nothing orders them, and a hint."""
    return _boxed(Status.RACES, _race(record))


def _boxed(status: Status, inside: str) -> str:
    style = f"border-left:4px solid {_COLOURS[status]};padding:.2em .8em;margin:.4em 0"
    return f"<div style='{style}'>{inside}</div>"


def _verdict(verdict: RaceVerdict) -> str:
    parts = [_status(verdict)]
    if verdict.memory_model:
        parts.append(f"<div style='{_FAINT}'>memory model: {escape(verdict.memory_model)}</div>")
    parts += [_refused(config) for config in verdict.configs if config.status in (Status.UNSUPPORTED, Status.VACUOUS)]
    parts += [f"<div>note: {escape(note)}</div>" for note in verdict.notes]
    races = [record for config in verdict.configs for record in config.races]
    parts += [_race(record) for record in races[:_RACES_SHOWN]]
    if len(races) > _RACES_SHOWN:
        parts.append(f"<div>and {len(races) - _RACES_SHOWN} more races</div>")
    return "".join(parts)


def _status(verdict: RaceVerdict) -> str:
    words = {
        Status.OK: f"proved race-free for {verdict.scope.value if verdict.scope else 'this launch'}",
        Status.RACES: "this launch races",
        Status.UNSUPPORTED: "not analysed, nothing is claimed",
        Status.VACUOUS: "nothing can execute, nothing is claimed",
    }[verdict.status]
    assumed = f"; {', '.join(verdict.qualifiers)}" if verdict.qualifiers else ""
    name = f"<b style='color:{_COLOURS[verdict.status]}'>{verdict.status.value}</b>"
    return f"<div>{name} {escape(words + assumed)}</div>"


def _refused(config: RaceConfigVerdict) -> str:
    of = f" (config {config_text(config.config)})" if config.config else ""
    if config.refusal is None:
        return f"<div>vacuous{escape(of)}</div>"
    source = config.refusal.source
    where = f" {_place((source.file, source.line, ''))}" if source is not None else ""
    return f"<div>{escape(config.refusal.kind)}: {escape(config.refusal.reason + of)}{where}</div>"


def _race(record: CompiledRaceRecord) -> str:
    name = rule_of(record)
    config = f" (config {config_text(record.config)})" if record.config else ""
    head = f"<div><b>{name}</b> {escape(RULES[name].title + config)}</div>"
    sides = zip((record.first, record.second), record.programs, strict=True)
    accesses = "".join(_access(access, program) for access, program in sides)
    hint = f"<div>hint: {escape(record.hint)}</div>" if record.hint else ""
    why = f"<div>why: {escape(record.reason)}</div>{hint}"
    return f"<div style='margin:.5em 0'>{head}{accesses}{why}</div>"


def _access(access: RaceAccess, program: tuple[int, int, int]) -> str:
    lane = f", lane {access.lane[0] if len(access.lane) == 1 else access.lane}" if access.lane else ""
    at = f", at {access.arithmetic}" if access.arithmetic else ""
    said = f"{access.op} of {place_of(access)} by program {program}{lane}{at}"
    line = linecache.getline(access.source[0], access.source[1]).strip()
    code = f"<pre style='{_CODE}'>{escape(line)}</pre>" if line else ""
    return f"<div>{escape(said)} <span style='{_FAINT}'>{_place(access.source)}</span></div>{code}"


def _place(source: SourceLine) -> str:
    return escape(f"{source[0]}:{source[1]}" if source[1] else source[0])
