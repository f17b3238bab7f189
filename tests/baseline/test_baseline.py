"""Baseline files: what is set aside, what stays, and that line numbers and folders do not matter."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from baseline_kernels import KERNELS, Check

from racefree import baseline
from racefree.access import Site
from racefree.errors import InputError
from racefree.report.model import Finding, Gap, Report, Side, Subject, count
from racefree.verdict import Status

FILE = "/project/src/kernels.py"
TWICE = "tl.store(out + offsets, 1)"


def finding(line: int, rule: str = "RF001") -> Finding:
    side = Side("store", True, "program (0, 0, 0)", "out[0]", Site(FILE, line))
    return Finding(rule, "WAW", side, side, "nothing orders them")


def report(*findings: Finding, sources: dict[int, str], name: str = "twice", **rest: object) -> Report:
    status = Status.RACES if findings else Status.OK
    subject = Subject("launch", name, status, Site(FILE, 1), findings=findings, **rest)  # type: ignore[arg-type]
    return Report("0", "/project", (subject,), sources={FILE: sources})


def test_moved_lines_are_the_same_race() -> None:
    known = baseline.of_report(report(finding(14), sources={14: TWICE}), Path("/project/base.json"))
    moved = baseline.applied(report(finding(90), sources={90: f"  {TWICE}"}), known)
    assert (count(moved).races, count(moved).allowed, moved.notes) == (0, 1, ())
    assert moved.subjects[0].allowed[0].reason == "known in base.json"


@pytest.mark.parametrize(
    "changed",
    [
        report(finding(14), sources={14: "tl.store(out + offsets, 2)"}),
        report(finding(14), sources={14: TWICE}, name="another"),
        report(finding(14, "RF003"), sources={14: TWICE}),
    ],
)
def test_another_race_stays(changed: Report) -> None:
    known = baseline.of_report(report(finding(14), sources={14: TWICE}), Path("/project/base.json"))
    assert count(baseline.applied(changed, known)).races == 1


def test_one_known_race_does_not_allow_a_second_alike() -> None:
    known = baseline.of_report(report(finding(14), sources={14: TWICE}), Path("/project/base.json"))
    both = report(finding(14), finding(20), sources={14: TWICE, 20: TWICE})
    left = baseline.applied(both, known)
    assert [found.site for found in left.subjects[0].findings] == [Site(FILE, 20)]
    two = baseline.of_report(both, Path("/project/base.json"))
    assert [known.count for known in two.races] == [2]
    assert count(baseline.applied(both, two)).races == 0
    one_left = baseline.applied(report(finding(14), sources={14: TWICE}), two)
    assert one_left.notes == ("base.json: stale: RF001 in twice (src/kernels.py): 1 of 2 are left",)


def test_the_folder_of_a_run_does_not_matter() -> None:
    """Only the folder of the baseline does, for a path given from anywhere."""
    here = report(finding(14), sources={14: TWICE})
    known = baseline.of_report(here, Path("/project/base.json"))
    (subject,) = here.subjects
    site = Site("../src/kernels.py", 14)
    side = replace(subject.findings[0].first, site=site)
    moved = replace(subject, findings=(replace(subject.findings[0], first=side, second=side),))
    elsewhere = Report("0", "/project/docs", (moved,), sources={site.file: {14: TWICE}})
    assert count(baseline.applied(elsewhere, known)).races == 0
    other = replace(elsewhere, root="/elsewhere/docs")
    assert count(baseline.applied(other, known)).races == 1


def test_stale_is_said_only_where_everything_was_decided() -> None:
    known = baseline.of_report(report(finding(14), sources={14: TWICE}), Path("/project/base.json"))
    clean = report(sources={})
    stale = ("base.json: stale: RF001 in twice (src/kernels.py): not met in this run",)
    assert baseline.applied(clean, known).notes == stale
    (subject,) = clean.subjects
    for open_ in (
        replace(subject, gaps=(Gap("timeout", "too slow", None),)),
        replace(subject, status=Status.UNSUPPORTED),
        replace(subject, name="another"),
    ):
        assert baseline.applied(replace(clean, subjects=(open_,)), known).notes == ()


def test_races_beyond_those_listed_still_count() -> None:
    listed = report(finding(14), sources={14: TWICE}, unlisted=3)
    left = baseline.applied(listed, baseline.of_report(listed, Path("/project/base.json")))
    assert (count(left).races, count(left).racing) == (0, 1)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "cannot read the baseline"),
        ("[]", "is no baseline of this version"),
        ('{"kind": "racefree-baseline", "schema": 2, "races": []}', "is no baseline of this version"),
        ('{"kind": "racefree-baseline", "schema": 1, "races": [{}]}', "is damaged"),
        ('{"kind": "racefree-baseline", "schema": 1, "races": [{"count": 0}]}', "is damaged: count 0"),
    ],
)
def test_damaged_file(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "base.json"
    path.write_text(text)
    with pytest.raises(InputError, match=said):
        baseline.read(path)


def test_write_then_check(kernels: Path, check: Check, tmp_path: Path) -> None:
    written = check("--write-baseline", "base.json", "kernels.py")
    assert "note: 2 races were written to base.json" in written.stdout
    assert written.exit_code == 0
    document = json.loads((tmp_path / "base.json").read_text())
    assert [(race["rule"], race["kernel"], race["path"], race["count"]) for race in document["races"]] == [
        ("RF001", "put", "kernels.py", 1),
        ("RF001", "twice", "kernels.py", 1),
    ]
    kernels.write_text("# a line above\n\n" + KERNELS.replace(TWICE, "tl.store(out + offsets, 3)"))
    for path, folder in (("kernels.py", "."), ("../kernels.py", "inside"), (kernels, "inside")):
        known = "base.json" if folder == "." else "../base.json"
        done = check("--baseline", known, path, folder=folder)
        assert done.stdout.count("RACE RF001") == 1
        assert done.stdout.rstrip().endswith(
            "1 races in 1, 0 not analysed, 0 vacuous, 0 proved race-free; 1 races allowed"
        )
        assert done.exit_code == 1


def test_baseline_of_the_project(kernels: Path, check: Check, tmp_path: Path) -> None:
    """Relative to pyproject.toml, from whichever folder the run is started; `--write-baseline` does not read it."""
    (tmp_path / "pyproject.toml").write_text('[tool.racefree]\nbaseline = "known.json"\n')
    missing = check("kernels.py")
    assert "cannot read the baseline" in missing.stderr
    assert missing.exit_code == 2
    assert check("--write-baseline", "known.json", "kernels.py").exit_code == 0
    assert check("../kernels.py", folder="inside").exit_code == 0
    again = check("--write-baseline", "again.json", "kernels.py")
    assert "2 races were written to again.json" in again.stdout
    assert (tmp_path / "again.json").read_text() == (tmp_path / "known.json").read_text()


def test_an_interrupted_run_writes_no_baseline(kernels: Path, check: Check, tmp_path: Path) -> None:
    kernels.write_text(KERNELS + "    raise KeyboardInterrupt\n")
    done = check("--write-baseline", "base.json", "kernels.py")
    assert not (tmp_path / "base.json").exists()
    assert done.exit_code == 1


def test_no_folder_to_write_to(kernels: Path, check: Check) -> None:
    done = check("--write-baseline", "missing/base.json", "kernels.py")
    assert "cannot write missing/base.json" in done.stderr
    assert done.exit_code == 2
