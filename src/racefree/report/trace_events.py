"""The report as trace events, the JSON that Perfetto opens: a track per engine, arrows for what orders them, races marked.

Perfetto takes thread numbers for those of one machine: threads of one number share a track, whatever their process, and
thread 0 and the one with the number of its process are its first thread. So no number is used twice here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from racefree.report.model import Report, Subject

_STEP = 1000
"""Microseconds on the time axis for one step of a program; steps have no real duration."""

Event = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A program as a process. Its engines are the threads from `first_thread`, its arrows the flows from `first_flow`."""

    subject: Subject
    file: str
    process: int
    first_thread: int
    first_flow: int

    @property
    def timeline(self) -> dict[str, Any]:
        timeline: dict[str, Any] = self.subject.records["timeline"]
        return timeline

    def track(self, instruction: int) -> Event:
        return {"pid": self.process, "tid": self.first_thread + self.timeline["engine"][instruction]}

    def start(self, instruction: int) -> int:
        return int(self.timeline["at"][instruction]) * _STEP


def render(report: Report) -> str:
    """Engine programs as processes; launches, which have no timeline, are left out."""
    subjects = [subject for subject in report.subjects if subject.records.get("timeline") is not None]
    events: list[Event] = []
    thread, flow = len(subjects) + 1, 0
    for process, subject in enumerate(subjects, start=1):
        drawn = _Drawn(subject, report.place(subject.site), process, thread, flow)
        events += [*_names(drawn), *_instructions(drawn), *_arrows(drawn), *_races(drawn)]
        thread += len(drawn.timeline["engines"])
        flow += len(drawn.timeline["edges"])
    return json.dumps({"traceEvents": events, "displayTimeUnit": "ms"}) + "\n"


def _names(drawn: _Drawn) -> Iterator[Event]:
    yield {
        "ph": "M",
        "pid": drawn.process,
        "name": "process_name",
        "args": {"name": f"{drawn.subject.name} of {drawn.file}"},
    }
    for engine, name in enumerate(drawn.timeline["engines"]):
        track = {"ph": "M", "pid": drawn.process, "tid": drawn.first_thread + engine}
        yield track | {"name": "thread_name", "args": {"name": name}}
        yield track | {"name": "thread_sort_index", "args": {"sort_index": engine}}


def _instructions(drawn: _Drawn) -> Iterator[Event]:
    timeline = drawn.timeline
    racing: dict[int, list[str]] = {}
    for race in timeline["races"]:
        for one, other in ((race["first"], race["second"]), (race["second"], race["first"])):
            racing.setdefault(one, []).append(f"{race['type']} with {timeline['names'][other]} on {race['buffer']}")
    for index, name in enumerate(timeline["names"]):
        # Perfetto colours and searches by name, leaving digits out: with the opcode in it, equal work looks alike.
        opcode = timeline["opcodes"][timeline["opcode"][index]]
        event = {"ph": "X", "ts": drawn.start(index), "dur": _STEP, "name": f"{name} {opcode}", "cat": opcode}
        event |= drawn.track(index)
        if index in racing:
            event |= {"cname": "terrible", "args": {"races": racing[index]}}
        yield event


def _arrows(drawn: _Drawn) -> Iterator[Event]:
    """What orders two engines; an arrow cannot point back in time, as the order of a loop's next iteration would."""
    for number, (source, target) in enumerate(drawn.timeline["edges"], start=drawn.first_flow):
        leaves, arrives = drawn.start(source) + _STEP - 1, drawn.start(target)
        if leaves < arrives:
            common = {"id": number, "name": "orders", "cat": "order"}
            yield drawn.track(source) | common | {"ph": "s", "ts": leaves}
            yield drawn.track(target) | common | {"ph": "f", "bp": "e", "ts": arrives}


def _races(drawn: _Drawn) -> Iterator[Event]:
    """A span of its own for each race, over both of its accesses. With a local id it stands among its process's tracks."""
    names = drawn.timeline["names"]
    for number, race in enumerate(drawn.timeline["races"]):
        starts = sorted(drawn.start(race[side]) for side in ("first", "second"))
        common = {
            "pid": drawn.process,
            "tid": drawn.first_thread,
            "cat": "race",
            "id2": {"local": str(number)},
            "name": f"race {race['type']} {names[race['first']]} / {names[race['second']]} on {race['buffer']}",
        }
        place = {name: race[name] for name in ("partition", "byte") if race[name] is not None}
        yield common | {"ph": "b", "ts": starts[0], "args": place, "cname": "terrible"}
        yield common | {"ph": "e", "ts": starts[1] + _STEP}
