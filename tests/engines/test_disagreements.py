"""Where the semaphores do something else than the document says they are for."""

from __future__ import annotations

import engine_programs as make
import pytest

from racefree.engines.check import check
from racefree.engines.program import EngineProgram


def _kinds(program: EngineProgram) -> list[tuple[str, str, str | None]]:
    return [(one.kind, one.instruction, one.producer) for one in check(program).disagreements]


def _two_updates(value: int, *, producer: int) -> EngineProgram:
    """Two engines each add 1 to s; the user names one of them."""
    builder = make.Maker()
    builder.step("one", "A", updates=(("s", 1),))
    builder.step("two", "B", updates=(("s", 1),))
    builder.wait(builder.step("user", "C"), builder.semaphore("s"), value, producer=producer)
    return builder.build()


@pytest.mark.parametrize(
    ("value", "producer", "expected"),
    [
        (1, 0, [("released-too-early", "user", "one")]),
        (1, 1, [("released-too-early", "user", "two")]),
        (2, 0, [("over-waited", "user", "one")]),
        (2, 1, []),
    ],
)
def test_what_a_count_says_about_its_producer(value: int, producer: int, expected: list[tuple[str, str, str]]) -> None:
    assert _kinds(_two_updates(value, producer=producer)) == expected


def test_the_message_says_by_how_much() -> None:
    (one,) = check(_two_updates(1, producer=0)).disagreements
    assert one.message == "user waits for one by 1 on semaphore s, which others can raise to 2 before it is done"


def test_a_wait_for_a_step_that_does_not_update_the_semaphore() -> None:
    builder = make.Maker()
    builder.step("one", "A", updates=(("s", 1),))
    builder.step("other", "B", updates=(("t", 1),))
    builder.wait(builder.step("user", "C"), builder.semaphore("s"), 1, producer=1)
    assert _kinds(builder.build()) == [("wrong-producer", "user", "other")]


def test_a_wait_for_a_later_step() -> None:
    builder = make.Maker()
    builder.step("one", "A", updates=(("s", 1),))
    user = builder.step("user", "B")
    builder.step("two", "A", updates=(("s", 1),))
    builder.wait(user, builder.semaphore("s"), 1, producer=2)
    assert _kinds(builder.build()) == [("later-producer", "user", "two")]


def test_a_dependency_that_no_wait_enforces() -> None:
    builder = make.Maker()
    builder.step("one", "A", writes="a", updates=(("s", 1),))
    builder.step("user", "B", reads="a", after=(0,))
    verdict = check(builder.build())
    assert [order.status.value for order in verdict.orders] == ["ok", "races"]
    assert [(one.kind, one.instruction, one.producer) for one in verdict.disagreements] == [
        ("missing-wait", "user", "one")
    ]


def test_a_deadlock_names_the_waits_it_stops_at() -> None:
    builder = make.Maker()
    builder.step("one", "A", updates=(("s", 1),))
    builder.step("user", "B", waits=(("s", 2),))
    (one,) = check(builder.build()).disagreements
    assert (one.kind, one.instruction, one.semaphore) == ("deadlock", "user", "s")
    assert one.message == "user waits for 2 on semaphore s, which never exceeds 1"
