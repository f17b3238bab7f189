"""Compares the checker's verdict on a straight-line document with brute force and with the readable reference, pair by pair."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from bir_brute import Answer, Document

from racefree.engines.check import Options, check
from racefree.engines.program import EngineProgram
from racefree.engines.records import EngineRace, OrderVerdict
from racefree.engines.reference import checker
from racefree.neuron.lowering import lower_with_owners
from racefree.neuron.reading import from_value
from racefree.verdict import Status

EVERYTHING = Options(limit=1_000_000, repair=False)


@dataclass(frozen=True)
class Judged:
    """`differences` is empty when checker, brute force and reference agree on every pair under both orders.

    `uncovered` says why the reference says nothing about the document; it is empty where it does.
    """

    differences: tuple[str, ...]
    found: dict[str, OrderVerdict]
    exact: dict[str, Answer]
    uncovered: str


def judge(document: dict[str, Any]) -> Judged:
    module = from_value(document)
    lowered = lower_with_owners(module, module.functions[0])
    brute = Document(document)
    exact = {"dependencies": brute.by_dependencies(), "semaphores": brute.by_semaphores()}
    touching = [at for at, item in enumerate(brute.items) if item.touches]
    number = {row: item for (row, _), item in zip(lowered.owners, touching, strict=True)}
    found, wrong = {}, []
    for order, answer in exact.items():
        (found[order],) = check(lowered.program, order=order, options=EVERYTHING).orders
        wrong += [f"{order}: {one}" for one in _differences(found[order], answer, number)]
    uncovered = _beyond_reference(lowered.program)
    if not uncovered:
        wrong += _against_reference(lowered.program)
    return Judged(tuple(wrong), found, exact, uncovered)


def _beyond_reference(program: EngineProgram) -> str:
    """The specified checker knows one block at a time, and loses a dependency on a later instruction."""
    edges = program.dependencies
    if not len(program):
        return "refused as a whole"
    if (edges.source >= edges.target)[edges.distance == 0].any():
        return "a dependency on a later instruction"
    return ""


def _against_reference(program: EngineProgram) -> Iterable[str]:
    """The fast engine under the compiler's rules, beside the specified checker."""
    expected = {(race.first, race.second) for race in checker.collect(program)}
    rules = replace(EVERYTHING, compiler_exemptions=True)
    (verdict,) = check(program, options=rules).orders
    found = {(race.first.instruction, race.second.instruction) for race in verdict.races}
    if found != expected or verdict.status is not (Status.RACES if expected else Status.OK):
        yield f"reference: found {sorted(found)} ({verdict.status.value}), expected {sorted(expected)}"


def _differences(verdict: OrderVerdict, answer: Answer, number: dict[int, int]) -> Iterable[str]:
    def pairs(records: Iterable[EngineRace]) -> frozenset[tuple[int, int]]:
        sides = [sorted((number[one.first.instruction], number[one.second.instruction])) for one in records]
        return frozenset((first, second) for first, second in sides)

    certain = pairs(verdict.races) | pairs(verdict.excused)
    # A refused order claims nothing about pairs; that it found none then is no difference.
    if certain != answer.races and not (answer.refused and verdict.refusals and not certain):
        yield f"found {sorted(certain)}, expected {sorted(answer.races)}"
    if not answer.refused and pairs(verdict.possible) != answer.possible:
        yield f"possible {sorted(pairs(verdict.possible))}, expected {sorted(answer.possible)}"
    if verdict.status is not _expected(verdict, answer, certain):
        yield f"status {verdict.status.value} with {verdict.refusals}"


def _expected(verdict: OrderVerdict, answer: Answer, certain: frozenset[tuple[int, int]]) -> Status:
    """Excused reads alone are no race; everything else follows from the exact answer."""
    if answer.races and certain and verdict.races:
        return Status.RACES
    if answer.refused or answer.possible:
        return Status.UNSUPPORTED
    return Status.OK if len(verdict.excused) == len(answer.races) else Status.RACES
