"""The README and the pages of the documentation as blocks: files to write, commands to run, Python sessions to try.

A fenced block is one of these; a comment in the line before it says what its language does not:

* `console`: commands after `$ `, each with the output it shows, if any, where a line `...` stands for any lines;
* `pycon`: a Python session;
* any language after `<!-- file: NAME -->`: a file of the page's folder;
* any language after `<!-- not run: WHY -->`: nothing that a test could run here;
* `text`: no command.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))

_FENCE = re.compile(r"^```(?P<language>[\w{}-]*)\s*$")
_COMMENT = re.compile(r"^<!-- (?P<word>file|not run): (?P<value>.+) -->$")


@dataclass(frozen=True, slots=True)
class Block:
    """`line` is that of the opening fence. `file` and `not_run` are what a comment before it gives."""

    page: Path
    line: int
    language: str
    text: str
    file: str = ""
    not_run: str = ""

    @property
    def where(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    line: str
    shown: str


def blocks(page: Path) -> Iterator[Block]:
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        if opened is None:
            number += 1
            continue
        end = next(at for at in range(number + 1, len(lines)) if lines[at] == "```")
        told = _COMMENT.match(_line_before(lines, number))
        given = {} if told is None else {told["word"].replace(" ", "_"): told["value"]}
        yield Block(page, number + 1, opened["language"], "\n".join(lines[number + 1 : end]) + "\n", **given)
        number = end + 1


def _line_before(lines: list[str], number: int) -> str:
    return next((line for line in reversed(lines[:number]) if line.strip()), "")


def commands(block: Block) -> tuple[Command, ...]:
    """The commands of a `console` block. Lines that end in a backslash go on in the next."""
    found: list[Command] = []
    for part in re.split(r"(?m)^\$ ", block.text)[1:]:
        line, _, shown = re.sub(r"\\\n\s*", "", part).partition("\n")
        found.append(Command(line, shown))
    return tuple(found)
