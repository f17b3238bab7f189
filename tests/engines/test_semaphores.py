"""Order from semaphores: what a wait can and cannot stand for."""

from __future__ import annotations

import itertools

import engine_programs as make
import pytest

from racefree.engines.order import QueueOrder
from racefree.engines.program import EngineProgram, Timing, UpdateMode, WaitMode
from racefree.engines.semaphores import Deadlock, semaphore_order
from racefree.engines.timeline import unroll
from racefree.errors import InputError, Refused


def _ordered(program: EngineProgram, first: str, second: str, queue_order: QueueOrder = QueueOrder.IGNORED) -> bool:
    order = semaphore_order(unroll(program), queue_order=queue_order).order
    return order.completed_before(program.names.index(first), program.names.index(second))


@pytest.mark.parametrize(("value", "ordered"), [(1, False), (2, False), (3, True)])
def test_a_wait_orders_only_what_the_counter_cannot_do_without(value: int, ordered: bool) -> None:
    builder = make.Maker()
    builder.step("one", "A", updates=(("s", 1),))
    builder.step("two", "B", updates=(("s", 2),))
    builder.step("user", "C", waits=(("s", value),))
    program = builder.build()
    assert _ordered(program, "one", "user") is ordered
    assert _ordered(program, "two", "user") is (value > 1)


def test_all_ways_to_reach_a_value_may_lead_through_one_step() -> None:
    """Neither of two updates must have happened, but both follow the same instruction."""
    builder = make.Maker()
    builder.step("root", "A", updates=(("go", 1),))
    builder.step("left", "B", waits=(("go", 1),), updates=(("s", 1),))
    builder.step("right", "C", waits=(("go", 1),), updates=(("s", 1),))
    builder.step("user", "D", waits=(("s", 1),))
    program = builder.build()
    assert _ordered(program, "root", "user")
    assert not _ordered(program, "left", "user")
    assert not _ordered(program, "right", "user")


def test_an_update_that_can_only_come_later_is_not_counted() -> None:
    builder = make.Maker()
    builder.step("first", "A", updates=(("s", 16),))
    builder.step("user", "B", waits=(("s", 16),), updates=(("back", 1),))
    builder.step("second", "C", waits=(("back", 1),), updates=(("s", 16),))
    assert _ordered(builder.build(), "first", "user")


def test_an_update_that_could_come_earlier_spoils_the_wait() -> None:
    builder = make.Maker()
    builder.step("first", "A", updates=(("s", 16),))
    builder.step("user", "B", waits=(("s", 16),))
    builder.step("second", "C", updates=(("s", 16),))
    assert not _ordered(builder.build(), "first", "user")


@pytest.mark.parametrize(("queue_order", "ordered"), [(QueueOrder.IGNORED, False), (QueueOrder.COMPLETION, True)])
def test_a_later_transfer_vouches_for_an_earlier_one_only_in_order(queue_order: QueueOrder, ordered: bool) -> None:
    builder = make.Maker()
    builder.step("early", "SP", queue="q", updates=(("s", 16),))
    builder.step("late", "SP", queue="q", updates=(("t", 16),))
    builder.step("user", "PE", waits=(("t", 16),))
    assert _ordered(builder.build(), "early", "user", queue_order) is ordered
    assert _ordered(builder.build(), "late", "user", queue_order)


def test_two_transfers_on_one_semaphore_need_the_full_count() -> None:
    builder = make.Maker()
    builder.step("one", "SP", queue="q", updates=(("s", 16),))
    builder.step("two", "SP", queue="q", updates=(("s", 16),))
    builder.step("half", "PE", waits=(("s", 16),))
    builder.step("full", "DVE", waits=(("s", 32),))
    builder.step("partial", "Pool", waits=(("s", 17),))
    program = builder.build()
    assert [_ordered(program, "one", user) for user in ("half", "full", "partial")] == [False, True, True]
    assert [_ordered(program, "two", user) for user in ("half", "full", "partial")] == [False, True, True]


def test_the_engine_that_issued_a_transfer_does_not_wait_for_it() -> None:
    builder = make.Maker()
    builder.step("load", "SP", queue="q", updates=(("s", 16),))
    builder.step("next", "SP")
    builder.step("then", "SP", waits=(("s", 16),))
    program = builder.build()
    assert not _ordered(program, "load", "next")
    assert _ordered(program, "load", "then")


def test_an_update_after_reading_orders_reads_only() -> None:
    builder = make.Maker()
    load = builder.step("copy", "SP", queue="q", reads="a", writes="b", updates=(("s", 16),), early=True)
    user = builder.step("user", "PE", waits=(("s", 16),))
    order = semaphore_order(unroll(builder.build())).order
    assert order.read_before(load, user)
    assert not order.completed_before(load, user)


def test_the_next_instruction_of_an_engine_follows_completion_whatever_the_update_says() -> None:
    builder = make.Maker()
    first = builder.step("first", "PE", updates=(("s", 1),), early=True)
    user = builder.step("user", "DVE", waits=(("s", 1),))
    second = builder.step("second", "PE", updates=(("t", 1),))
    later = builder.step("later", "DVE", waits=(("t", 1),))
    order = semaphore_order(unroll(builder.build())).order
    assert (order.read_before(first, user), order.completed_before(first, user)) == (True, False)
    assert order.completed_before(first, second)
    assert order.completed_before(first, later)


@pytest.mark.parametrize("present", list(itertools.product([False, True], repeat=3)))
def test_a_handshake_needs_all_of_its_waits(present: tuple[bool, bool, bool]) -> None:
    """Each wait present or absent: each orders its own pair (the two loads of one engine are in order anyway)."""
    loaded, used, reloaded = present
    builder = make.Maker()
    builder.step("load", "SP", updates=(("full", 1),))
    builder.step("use", "PE", waits=(("full", 1),) if loaded else (), updates=(("free", 1),))
    builder.step("reload", "SP", waits=(("free", 1),) if used else (), updates=(("full", 1),))
    builder.step("reuse", "PE", waits=(("full", 2),) if reloaded else ())
    program = builder.build()
    assert _ordered(program, "load", "use") is loaded
    assert _ordered(program, "use", "reload") is used
    assert _ordered(program, "reload", "reuse") is reloaded


def test_a_barrier_orders_what_started_not_transfers() -> None:
    builder = make.Maker()
    builder.step("load", "SP", queue="q")
    builder.step("add", "PE")
    builder.step("idle", "DVE")
    builder.barrier("all", "Barrier", [builder.engine(e) for e in ("SP", "PE", "DVE")])
    builder.step("after", "DVE")
    program = builder.build()
    assert _ordered(program, "add", "after")
    assert not _ordered(program, "load", "after")


def _with_reset(*, first_barrier: bool, second_barrier: bool) -> EngineProgram:
    builder = make.Maker()
    engines = [builder.engine(e) for e in ("A", "B")]
    builder.step("one", "A", updates=(("s", 1),))
    builder.step("first user", "B", waits=(("s", 1),))
    if first_barrier:
        builder.barrier("before", "Barrier", engines)
    reset = builder.step("reset", "A")
    builder.update(reset, builder.semaphore("s"), 0, mode=UpdateMode.SET)
    if second_barrier:
        builder.barrier("after", "Barrier", engines)
    builder.step("two", "A", updates=(("s", 1),))
    builder.step("second user", "B", waits=(("s", 1),))
    return builder.build()


def test_a_fenced_reset_starts_the_count_again() -> None:
    program = _with_reset(first_barrier=True, second_barrier=True)
    assert _ordered(program, "two", "second user")


@pytest.mark.parametrize(("first", "second"), [(True, False), (False, True), (False, False)])
def test_a_reset_without_its_fences_is_refused(first: bool, second: bool) -> None:
    with pytest.raises(Refused) as caught:
        semaphore_order(unroll(_with_reset(first_barrier=first, second_barrier=second)))
    assert caught.value.refusal.kind == "unfenced-semaphore-reset"


def test_a_decrement_counts_down_when_fenced() -> None:
    builder = make.Maker()
    engines = [builder.engine(e) for e in ("A", "B")]
    builder.step("one", "A", updates=(("s", 3),))
    builder.barrier("before", "Barrier", engines)
    builder.update(builder.step("down", "A"), builder.semaphore("s"), 2, mode=UpdateMode.SUBTRACT)
    builder.barrier("after", "Barrier", engines)
    builder.step("two", "A", updates=(("s", 1),))
    builder.step("early", "B", waits=(("s", 1),))
    builder.step("late", "B", waits=(("s", 2),))
    program = builder.build()
    assert not _ordered(program, "two", "early")
    assert _ordered(program, "two", "late")


def test_a_wait_that_nothing_satisfies_is_a_deadlock() -> None:
    builder = make.Maker()
    builder.step("one", "A", updates=(("s", 1),))
    builder.step("user", "B", waits=(("s", 2),))
    with pytest.raises(Deadlock) as caught:
        semaphore_order(unroll(builder.build()))
    assert caught.value.refusal.kind == "semaphore-deadlock"
    assert caught.value.refusal.reason == "instruction 'user' waits for 2 on semaphore s, which never exceeds 1"
    assert [(wait.value, wait.reached) for wait in caught.value.waits] == [(2, 1)]


def test_a_circle_of_waits_is_a_deadlock() -> None:
    builder = make.Maker()
    builder.step("one", "A", waits=(("t", 1),), updates=(("s", 1),))
    builder.step("two", "B", waits=(("s", 1),), updates=(("t", 1),))
    with pytest.raises(Deadlock):
        semaphore_order(unroll(builder.build()))


def test_a_wait_for_an_exact_value_counts_only_when_the_value_cannot_be_passed() -> None:
    builder = make.Maker()
    builder.step("one", "A", updates=(("s", 1),))
    user = builder.step("user", "B")
    builder.wait(user, builder.semaphore("s"), 1, mode=WaitMode.EQUAL)
    assert _ordered(builder.build(), "one", "user")
    builder.step("two", "A", updates=(("s", 1),))
    with pytest.raises(Refused) as caught:
        semaphore_order(unroll(builder.build()))
    assert caught.value.refusal.kind == "semaphore-exact-value"


@pytest.mark.parametrize(
    ("wait", "update", "amount", "kind"),
    [
        (WaitMode.UNKNOWN, UpdateMode.ADD, 1, "semaphore-mode"),
        (WaitMode.AT_LEAST, UpdateMode.UNKNOWN, 1, "semaphore-mode"),
        (WaitMode.AT_LEAST, UpdateMode.ADD, -1, "semaphore-mode"),
        (WaitMode.AT_LEAST, UpdateMode.ADD, 2**31, "semaphore-overflow"),
    ],
)
def test_what_has_no_known_meaning_is_refused(wait: WaitMode, update: UpdateMode, amount: int, kind: str) -> None:
    builder = make.Maker()
    builder.update(builder.step("one", "A"), builder.semaphore("s"), amount, mode=update, timing=Timing.COMPLETED)
    builder.wait(builder.step("user", "B"), builder.semaphore("s"), 1, mode=wait)
    with pytest.raises(Refused) as caught:
        semaphore_order(unroll(builder.build()))
    assert caught.value.refusal.kind == kind


def test_a_count_that_fits_no_counter_is_an_input_error() -> None:
    builder = make.Maker()
    index = builder.step("one", "A")
    with pytest.raises(InputError, match="does not fit"):
        builder.wait(index, builder.semaphore("s"), 2**70)
