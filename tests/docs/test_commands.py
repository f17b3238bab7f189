"""Every command and every Python session that the README and the documentation show, run as it stands there."""

from __future__ import annotations

import difflib
import doctest
import re
import subprocess
from pathlib import Path

import pytest
from pages import PAGES, ROOT, Block, blocks, commands

SECONDS = 300
"""The most that one block may take, on a machine that is busy with other things."""

BROKEN = (2, 70, 126, 127, 130, 255)
"""Exit statuses that no command of the documentation has, unless it shows them with `echo $?`."""

NOT_RUN = {"sets up an environment", "needs a repository on GitHub", "needs a compiler's dump"}
"""The reasons for which a block may go without being run."""

MARK = "\x1eend of command"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page(page: Path, folder: Path, environment: dict[str, str]) -> None:
    for block in blocks(page):
        if block.not_run:
            continue
        if block.file:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            run_commands(block, folder, environment)
        elif block.language == "pycon":
            run_session(block, folder, environment)


def run_commands(block: Block, folder: Path, environment: dict[str, str]) -> None:
    """One shell for the block, so that `cd` and `$?` mean what a reader expects."""
    asked = commands(block)
    script = "status=0\n" + "".join(
        f"(exit $status)\n{command.line}\nstatus=$?\nprintf '{MARK} %s\\n' $status\n" for command in asked
    )
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    parts = re.split(rf"{MARK} (\d+)\n", done.stdout)
    outputs, statuses = parts[0:-1:2], [int(status) for status in parts[1::2]]
    assert len(outputs) == len(asked), f"{block.where}: the shell stopped early\n{done.stdout}"
    shown_next = [*(command.line for command in asked[1:]), ""]
    for command, output, status, after in zip(asked, outputs, statuses, shown_next, strict=True):
        told = f"{block.where}: $ {command.line}"
        assert status not in BROKEN or after.startswith("echo $?"), f"{told}\nexit status {status}\n{output}"
        if command.shown.strip():
            assert_shown(command.shown, output, told)


def run_session(block: Block, folder: Path, environment: dict[str, str]) -> None:
    file = folder / f"session_{block.line}.txt"
    file.write_text(block.text, encoding="utf-8")
    done = subprocess.run(
        ["python", "-m", "doctest", "-o", "ELLIPSIS", file.name],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, f"{block.where}\n{done.stdout}{done.stderr}"


def assert_shown(shown: str, output: str, told: str) -> None:
    want, got = plain(shown), plain(output)
    if not doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS):
        difference = "\n".join(
            difflib.unified_diff(want.splitlines(), got.splitlines(), "shown", "printed", lineterm="")
        )
        pytest.fail(f"{told}\n{difference}")


def plain(output: str) -> str:
    """Without what changes from run to run: times, how far a slow run has come; and without blanks at ends and around."""
    told = re.sub(r"(?m)^racefree: \d+ launches analysed, .*\n", "", output)
    timed = re.sub(r"\bin \d+(\.\d+)? ?(ms|s)\b", "in N s", told)
    return "\n".join(line.rstrip() for line in timed.strip("\n").splitlines()) + "\n"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_is_of_a_kind_that_is_tried(page: Path) -> None:
    for block in blocks(page):
        assert block.not_run in {"", *NOT_RUN}, f"{block.where}: not run for a reason of its own"
        known = block.language in ("console", "pycon", "text") or block.language.startswith("{")
        assert known or block.file or block.not_run, f"{block.where}: neither a command, nor a session, nor a file"


def test_a_wrong_output_is_noticed(folder: Path, environment: dict[str, str]) -> None:
    def block(text: str) -> Block:
        return Block(ROOT / "README.md", 1, "console", text)

    run_commands(block("$ racefree explain\n...\nRF102  read-write between engines\n...\n"), folder, environment)
    with pytest.raises(pytest.fail.Exception, match="RF999"):
        run_commands(block("$ racefree explain\nRF999  nothing\n"), folder, environment)
    with pytest.raises(AssertionError, match="exit status 2"):
        run_commands(block("$ racefree explain RF999\n"), folder, environment)
    run_commands(block("$ racefree explain RF999\n$ echo $?\n2\n"), folder, environment)
