"""What stderr says during a long run, on a terminal and elsewhere."""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from cli_scripts import HEADER

from racefree.launch import Launch
from racefree.report.progress import LiveProgress, PlainProgress, progress
from racefree.verdict import CompiledRaceRecord, RaceAccess, RaceConfigVerdict, RaceVerdict, Status

SIDE = RaceAccess("store", True, False, "out", ("kernel.py", 3, "kernel"), 5)
RACE = CompiledRaceRecord("WAW", SIDE, SIDE, ((0, 0, 0), (1, 0, 0)), "unordered")


def launch(*, racing: bool = False) -> Launch:
    races = (RACE,) if racing else ()
    status = Status.RACES if racing else Status.OK
    verdict = RaceVerdict(status, None, (), (RaceConfigVerdict({}, status, races=races),))
    return Launch("kernel", None, None, (1, 1, 1), "cuda:80", (), verdict)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_plain_lines_count_launches_and_races_and_name_the_kernel() -> None:
    stream = io.StringIO()
    told = PlainProgress(stream, seconds=0)
    told.began("first")
    told.analysed(launch(racing=True))
    told.began("second")
    told.analysed(launch())
    told.began("third")
    told.close()
    assert stream.getvalue().splitlines() == [
        "racefree: 0 launches analysed, 0 racing, now first",
        "racefree: 1 launches analysed, 1 racing, now second",
        "racefree: 2 launches analysed, 1 racing, now third",
    ]


def test_a_quick_run_writes_no_plain_lines() -> None:
    stream = io.StringIO()
    told = PlainProgress(stream)
    for _ in range(100):
        told.began("kernel")
        told.analysed(launch())
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("stream", "term", "kind"),
    [
        (io.StringIO(), "xterm", PlainProgress),
        (Terminal(), "xterm", LiveProgress),
        (Terminal(), "dumb", PlainProgress),
        (Terminal(), "", PlainProgress),
    ],
    ids=["pipe", "terminal", "dumb terminal", "terminal that does not say what it is"],
)
def test_only_a_terminal_that_moves_its_cursor_gets_a_moving_line(
    stream: io.StringIO, term: str, kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    assert type(progress(stream)) is kind


def test_several_analyses_at_once_share_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "80")
    stream = Terminal()
    told = LiveProgress(stream)
    told.began("one")
    told.began("two")
    told.analysed(launch(racing=True))
    told.analysed(launch())
    shown = stream.getvalue()
    told.close()
    assert "0 launches analysed, 0 racing, now one" in shown
    assert stream.getvalue() == shown, "the line is erased when the last analysis ends"


def on_a_terminal(command: list[str], *, columns: int, folder: Path) -> tuple[str, str]:
    """What a command writes to stdout, a pipe, and to stderr, a terminal of so many columns."""
    main, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")}
    process = subprocess.Popen(
        command, cwd=folder, env=environment | {"TERM": "xterm"}, stdout=subprocess.PIPE, stderr=side, text=True
    )
    os.close(side)
    told = b""
    while True:
        try:
            part = os.read(main, 4096)
        except OSError:  # the terminal's last user is gone
            break
        if not part:
            break
        told += part
    os.close(main)
    stdout, _ = process.communicate()
    return stdout, told.decode()


@pytest.mark.parametrize("columns", [100, 24])
def test_a_terminal_shows_the_analysis_in_one_line_that_goes_away(columns: int, tmp_path: Path) -> None:
    body = "fill[(4,)](torch.zeros(64, dtype=torch.int32, device='cuda'), 64, BLOCK=16, STEP=8)\nprint('spoken')\n"
    (tmp_path / "script.py").write_text(HEADER + body, encoding="utf-8")
    command = [sys.executable, "-m", "racefree", "check", "script.py"]
    stdout, told = on_a_terminal(command, columns=columns, folder=tmp_path)
    assert stdout.splitlines()[-1].startswith("1 launches: 1 races in 1")
    assert "\x1b" not in stdout
    drawn = [re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", part) for part in re.split(r"[\r\n]", told)]
    assert any(part[2:].startswith("0 launches analysed"[: columns - 3]) for part in drawn), told
    assert all(len(part) <= columns for part in drawn)
    assert told.rstrip().endswith("spoken")
    assert told.rstrip().removesuffix("spoken").endswith("\x1b[2K"), (
        "nothing of the line is left when the script goes on"
    )
