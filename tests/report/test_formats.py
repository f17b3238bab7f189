"""Every format against a file of what it has to say; `UPDATE_GOLDEN=1` writes the files anew."""

from __future__ import annotations

import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from racefree.report import formats, json_format, text
from racefree.report.model import Report
from racefree.verdict import Status

GOLDEN = Path(__file__).parent / "golden"


def matches(name: str, rendered: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(rendered, encoding="utf-8")
    assert rendered == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", formats.NAMES)
def test_racy_report(name: str, racy_report: Report) -> None:
    matches(f"racy.{name}", formats.render(name, racy_report))


@pytest.mark.parametrize("name", formats.NAMES)
def test_clean_report(name: str, clean_report: Report) -> None:
    matches(f"clean.{name}", formats.render(name, clean_report))


def test_verbose_text_names_scope_and_qualifiers(racy_report: Report) -> None:
    matches("racy-verbose.text", text.render(racy_report, text.Options(verbose=True, width=60)))


def test_colour_wraps_only_words_of_the_report(racy_report: Report) -> None:
    coloured = text.render(racy_report, text.Options(colour=True))
    assert "\x1b[1;31mRACE\x1b[0m RF001" in coloured
    assert "\x1b" not in text.render(racy_report)


@pytest.mark.parametrize("name", formats.NAMES)
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


def test_saved_report_reads_back_as_it_was(racy_report: Report) -> None:
    assert json_format.parse(json_format.render(racy_report)) == racy_report


def test_json_holds_every_field_of_a_record(racy_report: Report) -> None:
    value = json.loads(json_format.render(racy_report))["value"]
    racing = next(s for s in value["subjects"] if s["status"] == Status.RACES.value)
    record = racing["records"]["verdict"]["configs"][0]["races"][1]
    assert record["race_type"] == "WAR"
    assert record["programs"] == [[1, 0, 0], [0, 0, 0]]
    assert record["first"]["source"] == ["/project/kernels.py", 10, "shift"]
    assert record["first"]["element"] == 31
    assert record["config"] == {"BLOCK": 32}


def test_fingerprints_do_not_move_with_lines(racy_report: Report) -> None:
    """Inserting lines above a kernel keeps the identity of its races."""

    def prints(report: Report) -> list[str]:
        results = json.loads(formats.render("sarif-github", report))["runs"][0]["results"]
        return sorted(result["partialFingerprints"]["racefree/v1"] for result in results)

    moved = json_format.render(racy_report)
    for line in ("10", "11"):
        moved = moved.replace(f'"line": {line},', f'"line": 1{line},').replace(f'"{line}":', f'"1{line}":')
    assert prints(json_format.parse(moved)) == prints(racy_report)
    assert len(set(prints(racy_report))) == 2


def test_races_at_two_places_with_equal_text_are_both_shown(racy_report: Report) -> None:
    lines = dict(racy_report.sources["/project/kernels.py"])
    lines[10] = lines[11]
    same = json_format.parse(json_format.render(racy_report))
    same.sources["/project/kernels.py"].update(lines)
    shown = formats.render("concise", same).splitlines()
    assert sum("RF00" in line for line in shown) == 2
