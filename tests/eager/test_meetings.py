"""Which accesses of a run meet, on traces written by hand and against brute force."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest

from racefree.access import Kind
from racefree.eager import trace as traces
from racefree.eager.meetings import meetings
from racefree.eager.trace import TooMuch, Trace

PLACE = {kind: ("kernel.py", line, "kernel") for line, kind in enumerate(Kind, 1)}


def made(programs: int) -> Trace:
    return Trace(tuple((p, 0, 0) for p in range(programs)))


def touch(trace: Trace, program: int, kind: Kind, *addresses: int, size: int = 4, apart: bool = False) -> None:
    found = np.array(addresses, dtype=np.int64)
    trace.access(program, kind, PLACE[kind], size, found, np.arange(found.size), apart=apart)


def atomic(trace: Trace, program: int, address: int, *, acquires: bool, releases: bool) -> None:
    at = np.array([address], dtype=np.int64)
    trace.before_atomic(program, at, acquires=acquires)
    touch(trace, program, Kind.RMW, address)
    trace.after_atomic(program, at, releases=releases)


def places(trace: Trace) -> set[tuple[Kind, Kind]]:
    return {(meeting.first.kind, meeting.second.kind) for meeting in meetings(trace)}


def test_a_store_meets_a_load_of_another_program_only() -> None:
    trace = made(2)
    touch(trace, 0, Kind.STORE, 100, 104)
    touch(trace, 0, Kind.LOAD, 100)
    assert places(trace) == set()
    touch(trace, 1, Kind.LOAD, 104)
    assert places(trace) == {(Kind.STORE, Kind.LOAD)} or places(trace) == {(Kind.LOAD, Kind.STORE)}
    assert meetings(trace)[0].address == 104


def test_loads_never_meet() -> None:
    trace = made(2)
    touch(trace, 0, Kind.LOAD, 100)
    touch(trace, 1, Kind.LOAD, 100)
    assert places(trace) == set()


@pytest.mark.parametrize(("size", "start", "meets"), [(4, 100, False), (4, 102, True), (8, 100, True)])
def test_atomics_meet_unless_they_are_the_same_element(size: int, start: int, meets: bool) -> None:
    trace = made(2)
    touch(trace, 0, Kind.RMW, 100)
    touch(trace, 1, Kind.RMW, start, size=size)
    assert bool(places(trace)) is meets


def test_atomics_that_agree_on_one_element_may_overlap_on_another() -> None:
    trace = made(2)
    touch(trace, 0, Kind.RMW, 100, 104)
    touch(trace, 1, Kind.RMW, 100, 106)
    assert places(trace) == {(Kind.RMW, Kind.RMW)}


def test_an_atomic_of_one_program_only_is_plain_to_others() -> None:
    trace = made(2)
    touch(trace, 0, Kind.RMW, 100, apart=True)
    touch(trace, 1, Kind.RMW, 100)
    assert places(trace) == {(Kind.RMW, Kind.RMW)}


@pytest.mark.parametrize("releases", [False, True])
@pytest.mark.parametrize("acquires", [False, True])
@pytest.mark.parametrize("after", [False, True])
def test_only_release_then_acquire_orders(releases: bool, acquires: bool, after: bool) -> None:
    trace = made(3)
    touch(trace, 0, Kind.STORE, 200)
    atomic(trace, 0, 100, acquires=False, releases=releases)
    atomic(trace, 2, 100, acquires=False, releases=False)
    if not after:
        touch(trace, 1, Kind.LOAD, 200)
    atomic(trace, 1, 100, acquires=acquires, releases=False)
    if after:
        touch(trace, 1, Kind.LOAD, 200)
    assert bool(places(trace)) is not (releases and acquires and after)


def test_what_comes_after_a_release_is_not_published_by_it() -> None:
    trace = made(2)
    atomic(trace, 0, 100, acquires=False, releases=True)
    touch(trace, 0, Kind.STORE, 200)
    atomic(trace, 1, 100, acquires=True, releases=False)
    touch(trace, 1, Kind.LOAD, 200)
    assert places(trace) != set()


def test_random_traces_against_every_pair_of_bytes() -> None:
    answers = set()
    for seed in range(300):
        draw = random.Random(seed)
        trace = made(3)
        for _ in range(draw.randrange(2, 8)):
            kind = draw.choice((Kind.LOAD, Kind.STORE, Kind.RMW))
            size = draw.choice((1, 2, 4, 8))
            step = draw.choice((1, size))
            found = [96 + step * draw.randrange(0, 16) for _ in range(draw.randrange(1, 4))]
            touch(trace, draw.randrange(3), kind, *dict.fromkeys(found), size=size)
        expected = {
            tuple(sorted((one.place, other.place)))
            for one, other in combinations(trace.events, 2)
            if one.program != other.program and (one.kind.writes or other.kind.writes)
            for a in one.addresses.tolist()
            for b in other.addresses.tolist()
            if a < b + other.element_bytes and b < a + one.element_bytes
            if not (one.atomic and other.atomic and (a, one.element_bytes) == (b, other.element_bytes))
        }
        got = {(meeting.first.place, meeting.second.place) for meeting in meetings(trace, most=100)}
        assert got == expected, seed
        answers.add(bool(got))
    assert answers == {True, False}


def test_too_much_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MAX_ELEMENTS", 3)
    trace = made(1)
    touch(trace, 0, Kind.LOAD, 100, 104)
    with pytest.raises(TooMuch, match="more than 3 elements"):
        touch(trace, 0, Kind.LOAD, 100, 104)
