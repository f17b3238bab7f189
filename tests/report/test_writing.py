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


def test_a_format_that_there_is_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"--output md=r\.md: md is no format; the formats are concise, github, html"):
        writing.targets(["md=r.md"], "text")
    assert writing.targets(["./a=b"], "text") == [writing.Target("text", tmp_path / "a=b")]


class Screen(io.StringIO):
    """A terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("variables", "terminal", "coloured"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"FORCE_COLOR": "1"}, False, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, True, False),
    ],
)
def test_when_the_text_is_coloured(
    variables: dict[str, str], terminal: bool, coloured: bool, mixed_report: Report, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    stdout = Screen() if terminal else io.StringIO()
    writing.write(mixed_report, [writing.Target("text", None)], text.Options(), stdout)
    assert ("\x1b[" in stdout.getvalue()) is coloured


def test_a_file_has_neither_colours_nor_cut_lines(
    mixed_report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    shown = text.Options(width=30)
    writing.write(mixed_report, writing.targets([f"text={tmp_path / 'r'}"], "concise"), shown, Screen())
    assert (tmp_path / "r").read_text(encoding="utf-8") == text.render(mixed_report, shown)


def test_only_a_terminal_gets_source_lines_that_are_cut(mixed_report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    screen, pipe = Screen(), io.StringIO()
    for stdout in (screen, pipe):
        writing.write(mixed_report, [writing.Target("text", None)], text.Options(width=45), stdout)
    assert "  10 |     value = tl.load(x + offsets - 1...\n     |             ^^^^^^^\n" in screen.getvalue()
    assert "  10 |     value = tl.load(x + offsets - 1, mask=offsets > 0)\n" in pipe.getvalue()


def test_a_stdout_that_is_full_is_told(mixed_report: Report) -> None:
    with (
        open("/dev/full", "w", encoding="utf-8") as full,
        pytest.raises(InputError, match="cannot write stdout: No space"),
    ):
        writing.write(mixed_report, [writing.Target("text", None)], text.Options(), full)
