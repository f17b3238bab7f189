"""Pallas kernels with and without their waits: we report every race JAX's interpreter reports, and those it cannot see."""

from __future__ import annotations

from dataclasses import replace

import pytest
from pallas_events import Case, cases, program

from racefree.engines.check import check
from racefree.verdict import Status

CASES = cases()

NOT_REPORTED_BY_JAX = {("shared_semaphore", ()), ("gather_rows", ())}
"""Two transfers on one semaphore and a wait for one: the interpreter joins whatever has signalled by then."""


def _named(case: Case) -> str:
    return f"{case.kernel}-{'+'.join(case.waits) or 'none'}"


@pytest.mark.parametrize("case", CASES, ids=_named)
def test_verdict_against_the_interpreter(case: Case) -> None:
    verdict = check(program(case), order="semaphores")
    races = case.reported or (case.kernel, case.waits) in NOT_REPORTED_BY_JAX
    assert verdict.status is (Status.RACES if races else Status.OK), verdict.refusals


def test_there_are_enough_kernels() -> None:
    assert len({case.kernel for case in CASES}) >= 15
    assert sum(case.reported for case in CASES) >= 15
    assert sum(not case.reported for case in CASES) >= 15


def test_two_transfers_into_one_buffer_are_found_although_the_interpreter_misses_them_at_its_default() -> None:
    (case,) = [one for one in CASES if one.kernel == "two_loads_one_buffer" and not one.waits]
    assert case.reported_at_default == 0
    assert case.reported_with_many_slots > 0
    (order,) = check(program(case), order="semaphores").orders
    assert {(race.race_type, race.first.opcode, race.second.opcode) for race in order.races} == {("WAW", "dma", "dma")}


def test_dropping_one_more_wait_never_turns_races_into_ok() -> None:
    racing = [case for case in CASES if check(program(case), order="semaphores").status is Status.RACES]
    assert len(racing) >= 15
    for case in racing:
        for at, event in enumerate(case.events):
            if event["event"] == "wait":
                fewer = replace(case, events=(*case.events[:at], *case.events[at + 1 :]))
                assert check(program(fewer), order="semaphores").status is not Status.OK
