"""The report as trace events, the JSON that Perfetto opens: a track per engine, arrows for what orders them, races marked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from racefree.report.model import Report, Subject

_STEP = 1000
"""Microseconds on the time axis for one step of a program; steps have no real duration."""

Event = dict[str, Any]


def render(report: Report) -> str:
    """Engine programs as processes; launches, which have no timeline, are left out."""
    events: list[Event] = []
    flow = 0
    for number, subject in enumerate(report.subjects, start=1):
        timeline = subject.records.get("timeline")
        if timeline is not None:
            events += _names(number, subject, timeline)
            events += _instructions(number, timeline)
            events += _arrows(number, timeline, first=flow)
            flow += len(timeline["edges"])
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n"


def _names(process: int, subject: Subject, timeline: dict[str, Any]) -> Iterator[Event]:
    yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": subject.name}}
    for engine, name in enumerate(timeline["engines"]):
        yield {"ph": "M", "pid": process, "tid": engine, "name": "thread_name", "args": {"name": name}}
        yield {"ph": "M", "pid": process, "tid": engine, "name": "thread_sort_index", "args": {"sort_index": engine}}


def _instructions(process: int, timeline: dict[str, Any]) -> Iterator[Event]:
    racing: dict[int, list[str]] = {}
    for race in timeline["races"]:
        for one, other in ((race["first"], race["second"]), (race["second"], race["first"])):
            racing.setdefault(one, []).append(f"{race['type']} with {timeline['names'][other]} on {race['buffer']}")
    for index, (engine, at) in enumerate(zip(timeline["engine"], timeline["at"], strict=True)):
        event: Event = {
            "ph": "X",
            "pid": process,
            "tid": engine,
            "ts": at * _STEP,
            "dur": _STEP,
            "name": timeline["names"][index],
            "cat": timeline["opcodes"][timeline["opcode"][index]],
        }
        if index in racing:
            event |= {"cname": "terrible", "args": {"races": racing[index]}}
        yield event


def _arrows(process: int, timeline: dict[str, Any], *, first: int) -> Iterator[Event]:
    engine, at = timeline["engine"], timeline["at"]
    for number, (source, target) in enumerate(timeline["edges"], start=first):
        common = {"pid": process, "id": number, "name": "orders", "cat": "order"}
        yield common | {"ph": "s", "tid": engine[source], "ts": at[source] * _STEP + _STEP - 1}
        yield common | {"ph": "f", "bp": "e", "tid": engine[target], "ts": at[target] * _STEP}
