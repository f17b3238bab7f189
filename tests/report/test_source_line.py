"""A source line as a terminal shows it, with the mark under the call that accesses memory."""

from __future__ import annotations

import pytest

from racefree.access import Site
from racefree.report.model import Side
from racefree.report.source_line import displayed, width


def mark(source: str, column: int, columns: int | None = None) -> tuple[str, str]:
    """The line, and what of it stands above the mark."""
    line, start, length = displayed(source, Side("store", True, "p", "x[0]", Site("k.py", 1, column)), columns)
    cells = [character if at == 0 else "" for character in line for at in range(width(character))]
    return line, "".join(cells[start : start + length])


@pytest.mark.parametrize(
    ("source", "column", "line"),
    [
        ("    tl.store(x, 1)", 5, "    tl.store(x, 1)"),
        ("\t\ttl.store(x, 1)", 3, "        tl.store(x, 1)"),
        ('"漢字é"; tl.store(x, 1)', 8, '"漢字é"; tl.store(x, 1)'),
        ('"e\u0301"; tl.store(x, 1)', 7, '"e\u0301"; tl.store(x, 1)'),
        ('"\x1b[2J\x7f"; tl.store(x, 1)', 10, '"\u241b[2J\ufffd"; tl.store(x, 1)'),
        ('"\u202e"; tl.store(x, 1)', 6, '"\ufffd"; tl.store(x, 1)'),
    ],
)
def test_the_mark_is_under_the_call(source: str, column: int, line: str) -> None:
    assert mark(source, column) == (line, "tl.store")


@pytest.mark.parametrize(
    ("source", "column", "line"),
    [
        ("    tl.store(x, 1)", 5, "    tl.store(x, 1)"),
        ("    tl.store(x, 1)" + "y" * 50, 5, "    tl.store(x, 1)yyyyyyyyyyyyyyyyyyy..."),
        ("y" * 50 + " tl.store(x, 1)", 52, "...yyyyyyyyy tl.store(x, 1)"),
        ("y" * 50 + " tl.store(x, 1)" + "z" * 50, 52, "...yyyyyyyyy tl.store(x, 1)zzzzzzzzzz..."),
        ("漢" * 50 + " tl.store(x, 1)" + "漢" * 50, 52, "...漢漢漢漢漢漢漢漢漢 tl.store(x, 1)..."),
    ],
)
def test_of_a_long_line_the_part_around_the_mark_is_shown(source: str, column: int, line: str) -> None:
    assert mark(source, column, 40) == (line, "tl.store")
    assert width(line) <= 40


def test_a_mark_that_is_longer_than_the_screen_is_cut() -> None:
    line, marked = mark("    f(" + "a, " * 50 + ")", 0, 40)
    assert line == "    f(a, a, a, a, a, a, a, a, a, a, a..."
    assert marked == line.strip()
