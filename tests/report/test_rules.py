"""Which rule a race breaks."""

from __future__ import annotations

from typing import Any

import pytest

from racefree.report.launches import rule_of
from racefree.report.rules import RULES, explain
from racefree.verdict import CompiledRaceRecord, RaceAccess


def access(op: str = "store", *, line: int = 11, element: int = 64, tensor: str = "out", lane: int = 0) -> RaceAccess:
    atomic = op.startswith("atomic")
    return RaceAccess(op, op != "load", atomic, tensor, ("k.py", line, "k"), element, (lane,))


def record(first: RaceAccess, second: RaceAccess, *, inside: bool = False) -> CompiledRaceRecord:
    second_program = (0, 0, 0) if inside else (1, 0, 0)
    return CompiledRaceRecord("WAW", first, second, ((0, 0, 0), second_program), "unordered")


@pytest.mark.parametrize(
    ("first", "second", "inside", "rule"),
    [
        ("store", "store", False, "RF001"),
        ("load", "store", False, "RF002"),
        ("store", "load", False, "RF002"),
        ("store", "store", True, "RF003"),
        ("store", "load", True, "RF004"),
        ("atomic_rmw", "store", False, "RF005"),
        ("load", "atomic_cas", True, "RF005"),
        ("atomic_rmw", "atomic_rmw", False, "RF006"),
    ],
)
def test_rule(first: str, second: str, inside: bool, rule: str) -> None:
    assert rule_of(record(access(first), access(second), inside=inside)) == rule


@pytest.mark.parametrize("name", RULES)
def test_every_rule_explains_itself(name: str) -> None:
    said = explain(name)
    sections: list[Any] = [name, RULES[name].title, "On hardware", "A racy example", "The same, fixed"]
    assert [section for section in sections if section not in said] == []
