"""Machine formats of real runs, and of a report with everything in it, against the schemas that their readers have."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft4Validator
from test_golden import RUNS, report_of

from racefree.report import formats
from racefree.report.model import Report

SCHEMA = Path(__file__).parent / "sarif-2.1.0.json"


@cache
def validator() -> Draft4Validator:
    return Draft4Validator(json.loads(SCHEMA.read_text(encoding="utf-8")))


def wrong(document: Any) -> list[str]:
    return [f"{'/'.join(map(str, error.path))}: {error.message}" for error in validator().iter_errors(document)]


@pytest.mark.parametrize("name", ["sarif", "sarif-github"])
@pytest.mark.parametrize("run", [*RUNS, "mixed", "empty"])
def test_sarif(name: str, run: str, mixed_report: Report, empty_report: Report) -> None:
    made = {"mixed": mixed_report, "empty": empty_report}
    assert wrong(json.loads(formats.render(name, made.get(run) or report_of(run)))) == []


def test_the_schema_rejects_what_is_no_sarif(mixed_report: Report) -> None:
    document = json.loads(formats.render("sarif", mixed_report))
    document["runs"][0]["results"][0]["level"] = "fatal"
    document["runs"][0]["results"][1]["locations"][0]["physicalLocation"]["region"]["startColumn"] = 0
    assert len(wrong(document)) == 2


# What JUnit readers know: the attributes that each element must have, those it may have, and its children.
JUNIT = {
    "testsuites": ({"name", "tests", "failures", "errors", "time"}, set(), {"testsuite"}),
    "testsuite": ({"name", "tests", "failures", "errors", "skipped", "time"}, set(), {"testcase", "system-out"}),
    "testcase": ({"name", "classname", "time"}, set(), {"failure", "error", "system-out"}),
    "failure": ({"message", "type"}, set(), set()),
    "error": ({"message", "type"}, set(), set()),
    "system-out": (set(), set(), set()),
}


def assert_junit(element: ElementTree.Element) -> None:
    must, may, children = JUNIT[element.tag]
    assert must <= set(element.attrib) <= must | may, element.tag
    assert {child.tag for child in element} <= children
    assert len([child for child in element if child.tag in ("failure", "error")]) <= 1
    for name in ("tests", "failures", "errors", "skipped"):
        assert int(element.get(name, "0")) >= 0
    assert float(element.get("time", "0")) >= 0
    for child in element:
        assert_junit(child)


@pytest.mark.parametrize("run", [*RUNS, "mixed", "empty"])
def test_junit(run: str, mixed_report: Report, empty_report: Report) -> None:
    made = {"mixed": mixed_report, "empty": empty_report}
    root = ElementTree.fromstring(formats.render("junit", made.get(run) or report_of(run)))
    assert root.tag == "testsuites"
    assert_junit(root)


@pytest.mark.parametrize("run", ["engine-racy", "engine-clean"])
def test_trace_events(run: str) -> None:
    """What Perfetto needs of each kind of event, and that an arrow ends no earlier than it begins."""
    document = json.loads(formats.render("trace", report_of(run)))
    needs = {
        "M": {"args"},
        "X": {"tid", "ts", "dur", "cat"},
        "s": {"tid", "ts", "id", "cat"},
        "f": {"tid", "ts", "id", "cat", "bp"},
        "b": {"ts", "id2", "cat"},
        "e": {"ts", "id2", "cat"},
    }
    starts: dict[Any, float] = {}
    slices = set()
    for event in document["traceEvents"]:
        assert {"ph", "pid", "name"} | needs[event["ph"]] <= set(event)
        if event["ph"] == "X":
            slices.add((event["pid"], event["tid"]))
        elif event["ph"] == "s":
            starts[event["id"]] = event["ts"]
        elif event["ph"] == "f":
            assert starts.pop(event["id"]) <= event["ts"]
    assert starts == {}
    tracks = [(e["pid"], e["tid"]) for e in document["traceEvents"] if e["name"] == "thread_name"]
    assert slices <= set(tracks)
    races = [event for event in document["traceEvents"] if event["ph"] in "be"]
    assert len(races) == (2 if run == "engine-racy" else 0)
