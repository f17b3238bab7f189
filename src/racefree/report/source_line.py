"""A source line with a mark under the call that accesses memory: where the mark belongs, and how a terminal shows both."""

from __future__ import annotations

import re
import unicodedata
from itertools import accumulate

from racefree.report.model import Side

_CUT = "..."
_OVERRIDES = dict.fromkeys((*range(0x202A, 0x202F), *range(0x2066, 0x206A)), "\ufffd")
_SHOWN_AS = {n: chr(0x2400 + n) for n in range(0x20)} | dict.fromkeys(range(0x7F, 0xA0), "\ufffd") | _OVERRIDES
"""What would move the cursor, change colours or turn the direction of the text has one visible character instead."""


def caret(source: str, side: Side) -> tuple[int, int]:
    """Where a caret belongs under a source line whose tabs are four columns wide: (start, length).

    Under the call at the column of the access, else under the one call that says its operation, else under the statement.
    """
    text = source.expandtabs(4)
    if side.site is not None and 0 < side.site.column <= len(source):
        start = len(source[: side.site.column - 1].expandtabs(4))
        return start, len(re.match(r"[\w.]*", text[start:])[0]) or 1  # type: ignore[index]
    for call in (f"tl.{side.operation}", side.operation):
        if text.count(call) == 1:
            return text.index(call), len(call)
    indent = len(text) - len(text.lstrip())
    return indent, max(1, len(text.strip()))


def displayed(source: str, side: Side, columns: int | None = None) -> tuple[str, int, int]:
    """The line as a terminal shows it, and the mark under it in columns: (line, start, length).

    Of a line that takes more than `columns`, the part around the mark is left.
    """
    start, length = caret(source, side)
    line = source.expandtabs(4).translate(_SHOWN_AS)
    if columns is not None and width(line) > columns:
        line, start = _part(line, start, length, columns)
        length = min(length, len(line) - start)
    return line, width(line[:start]), max(1, width(line[start : start + length]))


def _part(line: str, start: int, length: int, columns: int) -> tuple[str, int]:
    """As much of a line as fits around the mark, and where the mark then starts."""
    room = columns - len(_CUT)
    first = start - columns // 4
    if width(line[: start + length]) <= room or first <= len(_CUT):
        return _beginning(line, room) + _CUT, start
    rest = _CUT + line[first:]
    return (rest if width(rest) <= columns else _beginning(rest, room) + _CUT), start - first + len(_CUT)


def _beginning(text: str, columns: int) -> str:
    """The longest beginning of a text that takes at most so many columns."""
    return text[: sum(taken <= columns for taken in accumulate(map(_columns, text)))]


def width(text: str) -> int:
    """How many columns of a terminal a text takes."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1
