"""What becomes of a report that goes to several files and to a stdout of another encoding, and of names that are no text."""

from __future__ import annotations

import io
import os
from dataclasses import replace
from pathlib import Path

import pytest

from racefree import writing
from racefree.errors import InputError
from racefree.report import formats, json_format, text
from racefree.report.model import Report

ODD = os.fsdecode(b"/project/k\xff.py")


def odd_names(report: Report) -> Report:
    """The report on a file whose name is bytes that are no UTF-8."""
    value = json_format.dumps("t", 1, report).replace("/project/kernels.py", "/project/k\\udcff.py")
    return json_format.loads(value, kind="t", schema=1, into=Report)


@pytest.mark.parametrize("name", formats.NAMES)
def test_a_name_that_is_no_text(name: str, mixed_report: Report, tmp_path: Path) -> None:
    report = odd_names(mixed_report)
    assert ODD in report.sources
    path = tmp_path / name
    writing.write(report, writing.targets([f"{name}={path}"], "text")[:1], text.Options(), io.StringIO())
    written = path.read_text(encoding="utf-8")
    if name.startswith("sarif"):
        assert '"uri": "k%FF.py"' in written
    elif name not in formats.DRAWN:
        assert "k\\udcff.py" in written or "k\ufffd.py" in written


def test_what_stdout_cannot_express(mixed_report: Report) -> None:
    known = {file: {n: f"{line} \u2192" for n, line in lines.items()} for file, lines in mixed_report.sources.items()}
    stdout = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    writing.write(replace(mixed_report, sources=known), [writing.Target("text", None)], text.Options(), stdout)
    stdout.seek(0)
    assert "\\u2192" in stdout.read()


def test_a_target_that_fails_stops_none_behind_it(mixed_report: Report, tmp_path: Path) -> None:
    stdout = io.StringIO()
    wanted = writing.targets(["html=/dev/full", "junit=/dev/full", f"json={tmp_path / 'r.json'}"], "concise")
    with pytest.raises(InputError) as told:
        writing.write(mixed_report, wanted, text.Options(), stdout)
    assert str(told.value).count("cannot write /dev/full: No space left on device") == 2
    assert json_format.read(tmp_path / "r.json", json_format.parse) == mixed_report
    assert stdout.getvalue() == formats.render("concise", mixed_report)


def test_a_file_is_where_it_was_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script may go to another folder meanwhile."""
    monkeypatch.chdir(tmp_path)
    (target, shown) = writing.targets(["json=r.json"], "text")
    assert (target.path, shown.path) == (tmp_path / "r.json", None)
    assert [each.format for each in writing.targets(["r.html"], "html")] == ["html"]
    with pytest.raises(InputError, match=r"cannot write no/r.json: no such folder"):
        writing.targets(["json=no/r.json"], "text")
