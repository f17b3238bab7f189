"""One behaviour as data: a launch, what is said about it, and the marked lines its races name."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

import racefree
from racefree.verdict import RaceConfigVerdict

ANY, SAME_PARAMETERS, THIS = "any-params-any-grid", "this-params-any-grid", "this-params-this-grid"


@dataclass(frozen=True, slots=True)
class Case:
    """`said` is a scope for a proof, "races", or the kind of a refusal. `strict` is said where every lane is a thread.

    `races` holds (type, mark, mark) of each race, in the order of execution or of the source. `without` are qualifiers a
    proof must not have, `with_` those it must.
    """

    kernel: Any
    grid: tuple[int, ...]
    arguments: Mapping[str, Any]
    said: str
    races: frozenset[tuple[str, str, str]] = frozenset()
    with_: frozenset[str] = frozenset()
    without: frozenset[str] = frozenset()
    strict: str = field(default="")


def races(*pairs: str) -> frozenset[tuple[str, str, str]]:
    """From `"RAW R1 R2"` and the like."""
    found = []
    for pair in pairs:
        kind, first, second = pair.split()
        found.append((kind, first, second))
    return frozenset(found)


def ints(count: int, *, dtype: torch.dtype = torch.int32) -> torch.Tensor:
    return torch.zeros(count, dtype=dtype)


def permutation(count: int) -> torch.Tensor:
    return (torch.arange(count, dtype=torch.int32) * 5) % count


def decided(case: Case, *, lanes: str = "default") -> RaceConfigVerdict:
    (config,) = racefree.analyze(case.kernel, grid=case.grid, lanes=lanes, **case.arguments).verdict.configs
    return config


def said(verdict: RaceConfigVerdict) -> str:
    if verdict.scope is not None:
        return verdict.scope.value
    return verdict.status.value if verdict.refusal is None else verdict.refusal.kind


def marked_races(kernel: Any, verdict: RaceConfigVerdict) -> set[tuple[str, frozenset[int]]]:
    return {(r.race_type, frozenset({r.first.source[1], r.second.source[1]})) for r in verdict.races}


def lines_of(kernel: Any, wanted: frozenset[tuple[str, str, str]]) -> set[tuple[str, frozenset[int]]]:
    """The same races with line numbers for marks."""
    text, start = inspect.getsourcelines(kernel.fn)
    marks: dict[str, int] = {}
    for number, line in enumerate(text, start):
        for mark in line.partition("# ")[2].split():
            marks[mark] = number
    return {(kind, frozenset({marks[first], marks[second]})) for kind, first, second in wanted}
