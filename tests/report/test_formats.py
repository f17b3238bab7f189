"""What the formats say of a report with everything in it: races, gaps, proofs, a script that stopped, an odd source line."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from golden_files import matches

from racefree.access import Site
from racefree.report import formats, json_format, text
from racefree.report.model import Report, Subject
from racefree.verdict import Status

GOLDEN_FORMATS = tuple(name for name in formats.NAMES if name not in formats.DRAWN)


@pytest.mark.parametrize("name", GOLDEN_FORMATS)
def test_mixed_report(name: str, mixed_report: Report) -> None:
    matches(f"mixed.{name}", formats.render(name, mixed_report))


def test_verbose_text_names_scope_and_qualifiers(mixed_report: Report) -> None:
    matches("mixed-verbose.text", text.render(mixed_report, text.Options(verbose=True, width=60)))


def test_colour_wraps_only_words_of_the_report(mixed_report: Report) -> None:
    coloured = text.render(mixed_report, text.Options(colour=True))
    assert "\x1b[1;31mRACE\x1b[0m RF001" in coloured
    assert "\x1b" not in text.render(mixed_report)


@pytest.mark.parametrize("name", GOLDEN_FORMATS)
def test_nothing_to_check_says_zero_launches(name: str, empty_report: Report) -> None:
    rendered = formats.render(name, empty_report)
    if name in ("text", "concise", "github", "markdown"):
        assert "0 launches: 0 races in 0, 0 not analysed, 0 vacuous, 0 proved race-free" in rendered
    elif name == "json":
        assert json.loads(rendered)["summary"]["launches"] == 0
    elif name == "junit":
        assert ElementTree.fromstring(rendered).get("tests") == "0"
    else:
        assert json.loads(rendered)["runs"][0]["results"] == []


def test_saved_report_reads_back_as_it_was(mixed_report: Report) -> None:
    assert json_format.parse(json_format.render(mixed_report)) == mixed_report


def test_json_holds_every_field_of_a_record(mixed_report: Report) -> None:
    value = json.loads(json_format.render(mixed_report))["value"]
    racing = next(s for s in value["subjects"] if s["status"] == Status.RACES.value)
    record = racing["records"]["verdict"]["configs"][0]["races"][1]
    assert record["race_type"] == "WAR"
    assert record["programs"] == [[1, 0, 0], [0, 0, 0]]
    assert record["first"]["source"] == ["/project/kernels.py", 10, "shift"]
    assert record["first"]["element"] == 31
    assert record["config"] == {"BLOCK": 32}


def test_fingerprints_do_not_move_with_lines(mixed_report: Report) -> None:
    """Inserting lines above a kernel keeps the identity of its races."""

    def prints(report: Report) -> list[str]:
        results = json.loads(formats.render("sarif-github", report))["runs"][0]["results"]
        return sorted(result["partialFingerprints"]["racefree/v1"] for result in results)

    moved = json_format.render(mixed_report)
    for line in ("10", "11"):
        moved = moved.replace(f'"line": {line},', f'"line": 1{line},').replace(f'"{line}":', f'"1{line}":')
    assert prints(json_format.parse(moved)) == prints(mixed_report)
    assert len(set(prints(mixed_report))) == 2


def test_races_at_two_places_with_equal_text_are_both_shown(mixed_report: Report) -> None:
    lines = dict(mixed_report.sources["/project/kernels.py"])
    lines[10] = lines[11]
    same = json_format.parse(json_format.render(mixed_report))
    same.sources["/project/kernels.py"].update(lines)
    shown = formats.render("concise", same).splitlines()
    assert sum("RF00" in line for line in shown) == 2


def test_what_sarif_says_of_everything(mixed_report: Report) -> None:
    (run,) = json.loads(formats.render("sarif", mixed_report))["runs"]
    found = [(result["ruleId"], result["kind"], result["level"]) for result in run["results"]]
    races = [("RF002", "fail", "error"), ("RF001", "fail", "error")]
    assert found == [*races, ("not-analysed", "open", "none"), ("race-free", "pass", "none")]
    rules = run["tool"]["driver"]["rules"]
    assert all(rules[result["ruleIndex"]]["id"] == result["ruleId"] for result in run["results"])


def test_github_gets_races_only(mixed_report: Report) -> None:
    (run,) = json.loads(formats.render("sarif-github", mixed_report))["runs"]
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("RF002", "error"),
        ("RF001", "error"),
    ]


def test_region_of_a_race_is_the_call(mixed_report: Report) -> None:
    (run,) = json.loads(formats.render("sarif", mixed_report))["runs"]
    region = run["results"][1]["locations"][0]["physicalLocation"]["region"]
    line = region["snippet"]["text"]
    assert (region["startLine"], line[region["startColumn"] - 1 : region["endColumn"] - 1]) == (11, "tl.store")


def test_junit_counts_what_it_holds(mixed_report: Report) -> None:
    (suite,) = ElementTree.fromstring(formats.render("junit", mixed_report))
    cases = suite.findall("testcase")
    assert int(suite.attrib["tests"]) == len(cases) == 4
    assert int(suite.attrib["failures"]) == sum(case.find("failure") is not None for case in cases) == 1
    assert int(suite.attrib["errors"]) == sum(case.find("error") is not None for case in cases) == 2


def test_junit_numbers_launches_that_have_one_name(mixed_report: Report) -> None:
    racing = mixed_report.subjects[0]
    again = replace(mixed_report, subjects=(racing, *mixed_report.subjects, racing))
    (suite,) = ElementTree.fromstring(formats.render("junit", again))
    names = [case.attrib["name"] for case in suite.findall("testcase") if case.attrib["classname"] == "shift"]
    assert names == [f"launch at kernels.py:40{number}" for number in ("", " (2)", " (3)")]


def odd_file(report: Report) -> Report:
    """The report on a file in whose name everything stands that a format has to escape."""
    value = json_format.dumps("t", 1, report).replace("/project/kernels.py", "/project/a`|<b>, 100%: c.py")
    return json_format.loads(value, kind="t", schema=1, into=Report)


def test_markdown_of_a_name_with_marks(mixed_report: Report) -> None:
    rendered = formats.render("markdown", odd_file(mixed_report))
    assert ", `` a`|<b>, 100%: c.py:11:2 ``:" in rendered
    rows = [line for line in rendered.splitlines() if line.startswith("|") and ".py" in line]
    assert [len(re.findall(r"(?<!\\)\|", row)) for row in rows] == [5, 5]
    assert "a\\`|\\<b\\>, 100%: c.py:8: note: shift" in rendered


def test_github_of_a_name_with_marks(mixed_report: Report) -> None:
    rendered = formats.render("github", odd_file(mixed_report))
    assert "::error file=a`|<b>%2C 100%25%3A c.py,line=11,col=2,title=RF001 write-write" in rendered
    assert "lane 31 at a`|<b>, 100%25: c.py:11. nothing orders" in rendered


def test_uri_of_a_name_with_marks(mixed_report: Report) -> None:
    (run,) = json.loads(formats.render("sarif", odd_file(mixed_report)))["runs"]
    uri = run["results"][1]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
    assert uri == "a%60%7C%3Cb%3E%2C%20100%25%3A%20c.py"


def test_html_is_one_file_with_everything_inside(mixed_report: Report) -> None:
    page = formats.render("html", mixed_report)
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    assert data["summary"] == "4 launches: 2 races in 2, 1 not analysed, 0 vacuous, 1 proved race-free"
    assert [subject["status"] for subject in data["subjects"]] == ["races", "unsupported", "ok"]
    assert data["subjects"][1]["gaps"][0]["reason"].endswith("float | <dtype>")
    assert "<dtype>" not in page
    assert " src=" not in page
    assert "http" not in page.replace("http-equiv", "")


def drawn_program(name: str, races: Sequence[dict[str, Any]] = ()) -> Subject:
    timeline = {
        "engines": ["SP", "PE"],
        "engine": [0, 1, 0],
        "at": [0, 1, 1],
        "names": ["I-0", "I-1", "I-2"],
        "opcodes": ["DMACopy", "Matmult"],
        "opcode": [0, 1, 0],
        "edges": [[0, 1], [1, 2]],
        "races": list(races),
    }
    status = Status.RACES if races else Status.OK
    return Subject("engine program", name, status, site=Site(f"/{name}.json", 0), records={"timeline": timeline})


def trace_events_of(*subjects: Subject) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = json.loads(formats.render("trace", Report("0", "/", subjects)))["traceEvents"]
    return events


def test_trace_events_of_an_engine_program() -> None:
    """An arrow that would point back in time is left out: I-2 does not begin after I-1 in this picture."""
    race = {"first": 0, "second": 1, "type": "WAR", "buffer": "a", "byte": 4, "partition": None}
    events = trace_events_of(drawn_program("p", [race]))
    drawn = [(e["name"], e["tid"], e["ts"], e.get("args")) for e in events if e["ph"] == "X"]
    assert drawn == [("I-0 DMACopy", 2, 0, {"races": ["WAR with I-1 on a"]}),
                     ("I-1 Matmult", 3, 1000, {"races": ["WAR with I-0 on a"]}), ("I-2 DMACopy", 2, 1000, None)]  # fmt: skip
    assert [(e["ph"], e["tid"], e["id"]) for e in events if e["ph"] in "sf"] == [("s", 2, 0), ("f", 3, 0)]
    assert {e["args"]["name"] for e in events if e["name"] == "thread_name"} == {"SP", "PE"}
    assert [e["args"]["name"] for e in events if e["name"] == "process_name"] == ["p of p.json"]
    spans = [(e["ph"], e["name"], e["ts"], e.get("args")) for e in events if e["ph"] in "be"]
    assert spans == [("b", "race WAR I-0 / I-1 on a", 0, {"byte": 4}), ("e", "race WAR I-0 / I-1 on a", 2000, None)]


def test_no_two_engines_share_a_track_in_perfetto() -> None:
    """Thread numbers differ over all programs, and none is 0 or that of a process: those are one thread to Perfetto."""
    events = trace_events_of(*(drawn_program(name) for name in "pqr"))
    threads = [e["tid"] for e in events if e["name"] == "thread_name"]
    processes = [e["pid"] for e in events if e["name"] == "process_name"]
    assert len({0, *threads, *processes}) == 1 + len(threads) + len(processes) == 10
    arrows = [e["id"] for e in events if e["ph"] == "s"]
    assert len(set(arrows)) == len(arrows) == 3
