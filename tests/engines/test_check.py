"""The verdict on whole programs, with everything a race record says."""

from __future__ import annotations

from dataclasses import replace

import engine_programs as make
import pytest

from racefree.access import Dim, Pattern
from racefree.engines.check import Options, check
from racefree.engines.order import QueueOrder
from racefree.engines.program import AccessFlag, EngineProgram, InstructionFlag, MemoryKind, WaitMode
from racefree.engines.records import COMPILER_EXEMPTIONS, IN_ORDER_COMPLETION, ONE_AT_A_TIME, MissingEdge
from racefree.verdict import Status


def _pairs(program: EngineProgram, **options: object) -> list[tuple[str, str, str]]:
    verdict = check(program, order="dependencies", options=Options(**options)).orders[0]  # type: ignore[arg-type]
    return [(race.first.name, race.second.name, race.race_type) for race in verdict.races]


def test_the_clean_program_is_ok_under_both_orders() -> None:
    verdict = check(make.load_multiply_copy(racy=False))
    assert verdict.status is Status.OK
    assert [(order.order, order.status) for order in verdict.orders] == [
        ("dependencies", Status.OK),
        ("semaphores", Status.OK),
    ]
    assert verdict.disagreements == ()
    assert verdict.qualifiers == ()


@pytest.mark.parametrize("order", ["dependencies", "semaphores"])
def test_the_racy_program_has_exactly_one_race(order: str) -> None:
    verdict = check(make.load_multiply_copy(racy=True), order=order)
    assert verdict.status is Status.RACES
    (race,) = verdict.orders[0].races
    assert verdict.orders[0].race_count == 1
    assert race.race_type == "WAR"
    first, second = race.first, race.second
    assert (first.name, first.engine, first.queue, first.write, first.buffer) == ("I-1", "PE", None, False, "a")
    assert (second.name, second.engine, second.queue, second.write, second.buffer) == ("I-3", "SP", "q", True, "a")
    assert (race.byte, race.partition, race.bank) == (64 * ord("a"), 0, None)
    assert first.memory == "SBUF"
    assert verdict.engines == ("SP", "PE", "DVE")
    assert first.clock == (1, 0, 0)
    assert second.clock == (1, 0, 0)
    assert (race.last_ordered, race.first_ordered) == (None, "I-4")
    means = "SP waits for I-1 only at I-4"
    assert race.reason == f"when I-3 starts on SP, nothing of PE is known to be complete; {means}"
    assert not race.queue_order_only
    assert race.hidden_by == ()
    assert verdict.orders[0].missing_edges == (MissingEdge("I-1", "I-3", "PE", "SP"),)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"writes": "a"}, {"writes": "a"}, ["WAW"]),
        ({"writes": "a"}, {"reads": "a"}, ["RAW"]),
        ({"reads": "a"}, {"writes": "a"}, ["WAR"]),
        ({"reads": "a"}, {"reads": "a"}, []),
        ({"writes": "a"}, {"writes": "b"}, []),
    ],
)
def test_race_types(first: dict[str, str], second: dict[str, str], expected: list[str]) -> None:
    builder = make.Maker()
    builder.step("one", "PE", **first)  # type: ignore[arg-type]
    builder.step("two", "DVE", **second)  # type: ignore[arg-type]
    assert [kind for _, _, kind in _pairs(builder.build())] == expected


@pytest.mark.parametrize(
    ("queue_order", "status", "qualifier"),
    [
        (QueueOrder.IGNORED, Status.RACES, ()),
        (QueueOrder.COMPLETION, Status.RACES, ()),
        (QueueOrder.TRUSTED, Status.OK, (ONE_AT_A_TIME,)),
    ],
)
def test_two_transfers_that_only_their_queue_orders(
    queue_order: QueueOrder, status: Status, qualifier: tuple[str, ...]
) -> None:
    builder = make.Maker()
    builder.step("one", "SP", queue="q", writes="a")
    builder.step("two", "SP", queue="q", writes="a")
    verdict = check(builder.build(), options=Options(queue_order=queue_order))
    assert (verdict.status, verdict.qualifiers) == (status, qualifier)
    assert [race.queue_order_only for race in verdict.orders[0].races] == [True] * (status is Status.RACES)


@pytest.mark.parametrize(
    ("queue_order", "status", "qualifier"),
    [(QueueOrder.IGNORED, Status.RACES, ()), (QueueOrder.COMPLETION, Status.OK, (IN_ORDER_COMPLETION,))],
)
def test_a_use_that_waits_for_a_later_transfer_of_the_queue(
    queue_order: QueueOrder, status: Status, qualifier: tuple[str, ...]
) -> None:
    builder = make.Maker()
    builder.step("one", "SP", queue="q", writes="a")
    two = builder.step("two", "SP", queue="q", writes="b")
    builder.step("use", "PE", reads="ab", after=(two,))
    verdict = check(builder.build(), options=Options(queue_order=queue_order))
    assert (verdict.status, verdict.qualifiers) == (status, qualifier)
    assert [(race.first.name, race.queue_order_only) for race in verdict.orders[0].races] == [("one", True)] * (
        status is Status.RACES
    )


def test_two_queues_order_nothing() -> None:
    builder = make.Maker()
    builder.step("one", "SP", queue="q", writes="a")
    builder.step("two", "SP", queue="r", writes="a")
    (race,) = check(builder.build(), options=Options(queue_order=QueueOrder.TRUSTED)).orders[0].races
    assert not race.queue_order_only


class TestExemptions:
    """Exempt does not mean blind."""

    def test_writes_of_an_exempt_instruction_race(self) -> None:
        for flag, rule in (
            (InstructionFlag.READS_UNINITIALISED, "can-read-uninit"),
            (InstructionFlag.EXEMPT_OPCODE, "exempt-opcode"),
        ):
            builder = make.Maker()
            builder.step("one", "PE", writes="a", flags=flag)
            builder.step("two", "DVE", writes="a")
            program = builder.build()
            (race,) = check(program).orders[0].races
            assert race.hidden_by == (rule,)
            compiler = check(program, options=Options(compiler_exemptions=True))
            assert (compiler.status, compiler.qualifiers) == (Status.OK, (COMPILER_EXEMPTIONS,))

    @pytest.mark.parametrize("written_before", [False, True])
    def test_a_read_is_excused_only_while_nothing_was_written(self, written_before: bool) -> None:
        builder = make.Maker()
        if written_before:
            builder.step("fill", "PE", writes="a")
        builder.step("read", "PE", reads="a", flags=InstructionFlag.READS_UNINITIALISED)
        builder.step("write", "DVE", writes="a", after=(0,) if written_before else ())
        verdict = check(builder.build()).orders[0]
        assert verdict.status is (Status.RACES if written_before else Status.OK)
        assert len(verdict.excused) == (0 if written_before else 1)

    @pytest.mark.parametrize("waited_for", [False, True])
    def test_a_transfer_has_written_only_once_it_is_known_to_be_done(self, waited_for: bool) -> None:
        builder = make.Maker()
        load = builder.step("load", "SP", queue="q", writes="a")
        start = builder.step("start", "PE", after=(load,) if waited_for else ())
        builder.step("read", "PE", reads="a", flags=InstructionFlag.READS_UNINITIALISED)
        builder.step("write", "DVE", writes="a", after=(load, start))
        verdict = check(builder.build()).orders[0]
        excused = {(race.first.name, race.second.name) for race in verdict.excused}
        races = {(race.first.name, race.second.name) for race in verdict.races}
        if waited_for:
            assert (excused, races) == (set(), {("read", "write")})
        else:
            assert (excused, races) == ({("load", "read"), ("read", "write")}, set())

    def test_a_read_of_an_input_is_never_excused(self) -> None:
        builder = make.Maker()
        builder.buffer("a", builder.sbuf, initialised=True)
        builder.step("read", "PE", reads="a", flags=InstructionFlag.READS_UNINITIALISED)
        builder.step("write", "DVE", writes="a")
        assert check(builder.build()).status is Status.RACES

    def test_accumulates_on_two_engines_race(self) -> None:
        builder = make.Maker()
        builder.step("one", "PE", writes="a", flags=InstructionFlag.ACCUMULATES)
        builder.step("two", "DVE", writes="a", flags=InstructionFlag.ACCUMULATES)
        (race,) = check(builder.build()).orders[0].races
        assert race.hidden_by == ("accumulate-chain",)

    def test_operands_of_every_kind_are_seen(self) -> None:
        builder = make.Maker()
        index = builder.step("one", "PE")
        builder.access(
            index, builder.tile("a"), builder.buffer("a", builder.sbuf), AccessFlag.WRITE | AccessFlag.UNSEEN
        )
        builder.step("two", "DVE", writes="a")
        program = builder.build()
        (race,) = check(program).orders[0].races
        assert race.hidden_by == ("operand-kind",)
        assert check(program, options=Options(compiler_exemptions=True)).status is Status.OK

    def test_one_run_time_address_collides_with_itself(self) -> None:
        builder = make.Maker()
        for engine in ("PE", "DVE"):
            index = builder.step(f"on {engine}", engine)
            flags = AccessFlag.WRITE | AccessFlag.INEXACT
            builder.access(index, builder.tile("a"), builder.buffer("a", builder.sbuf), flags, dynamic=7)
        program = builder.build()
        verdict = check(program)
        assert verdict.status is Status.UNSUPPORTED
        assert [race.hidden_by for race in verdict.orders[0].possible] == [("same-dynamic-address",)]
        assert [refusal.kind for refusal in verdict.refusals] == ["runtime-address"]
        assert check(program, options=Options(compiler_exemptions=True)).status is Status.OK

    def test_blocks_are_checked_together(self) -> None:
        builder = make.Maker()
        builder.block("first")
        builder.step("one", "PE", writes="a")
        builder.block("second")
        builder.step("two", "DVE", writes="a")
        program = builder.build()
        (race,) = check(program).orders[0].races
        assert (race.first.block, race.second.block, race.hidden_by) == ("first", "second", ("one-block-at-a-time",))
        assert check(program, options=Options(compiler_exemptions=True)).status is Status.OK


def test_interleaved_patterns_do_not_meet() -> None:
    """Two strided accesses with one bounding box and no common byte, in the bytes or in the partitions."""
    builder = make.Maker()
    rows = Pattern(0, 1, (Dim(1, 8),))
    even, odd = (Pattern(start, 4, (Dim(8, 16),)) for start in (0, 4))
    even_rows, odd_rows = (Pattern(start, 1, (Dim(2, 64),)) for start in (0, 1))
    cases = [(even, rows), (odd, rows), (Pattern(1024, 64), even_rows), (Pattern(1024, 64), odd_rows)]
    for at, (inner, across) in enumerate(cases):
        index = builder.step(f"I{at}", f"E{at}")
        footprint = builder.footprint(builder.sbuf, inner, across)
        builder.access(index, footprint, builder.buffer("a", builder.sbuf), AccessFlag.WRITE)
    assert check(builder.build()).status is Status.OK


def test_names_do_not_matter_bytes_do() -> None:
    """Two tiles with different names whose byte ranges meet: [1280, 9472) and [8192, 16384)."""
    builder = make.Maker()
    for at, (start, end) in enumerate([(1280, 9472), (8192, 16384)]):
        index = builder.step(f"I{at}", f"E{at}")
        footprint = builder.footprint(builder.sbuf, Pattern(start, end - start), Pattern(0, 1))
        builder.access(index, footprint, builder.buffer(f"tile{at}", builder.sbuf), AccessFlag.WRITE)
    (race,) = check(builder.build()).orders[0].races
    assert (race.first.buffer, race.second.buffer, race.byte) == ("tile0", "tile1", 8192)


def test_spaces_and_banks_are_apart_and_a_race_names_its_bank() -> None:
    builder = make.Maker()
    spaces = [builder.space(MemoryKind.PSUM, "psum", bank=bank) for bank in (0, 1, 1)]
    for at, space in enumerate(spaces):
        index = builder.step(f"I{at}", f"E{at}")
        footprint = builder.footprint(space, Pattern(0, 4), Pattern(5, 1))
        builder.access(index, footprint, builder.buffer(f"bank{at}", space), AccessFlag.WRITE)
    (race,) = check(builder.build()).orders[0].races
    assert (race.first.name, race.second.name, race.bank, race.partition) == ("I1", "I2", 1, 5)


def test_a_dependency_on_a_later_instruction_orders_too() -> None:
    builder = make.Maker()
    builder.step("one", "PE", writes="a")
    builder.step("two", "DVE", writes="a")
    builder.depends(0, 1)
    assert check(builder.build()).status is Status.OK


def test_a_circle_of_dependencies_is_refused() -> None:
    builder = make.Maker()
    builder.step("one", "PE", writes="a")
    builder.step("two", "DVE", writes="a", after=(0,))
    builder.depends(0, 1)
    verdict = check(builder.build())
    assert verdict.status is Status.UNSUPPORTED
    assert [refusal.kind for refusal in verdict.refusals] == ["dependency-cycle"]


def test_a_refusal_of_the_front_end_spoils_its_order_only() -> None:
    builder = make.Maker()
    builder.step("one", "PE", writes="a", updates=(("s", 1),))
    builder.step("two", "DVE", writes="a", after=(0,), waits=(("s", 1),))
    builder.refuse("register-threshold", "a wait compares with a register", order="semaphores")
    verdict = check(builder.build())
    assert verdict.status is Status.UNSUPPORTED
    assert [(order.order, order.status) for order in verdict.orders] == [
        ("dependencies", Status.OK),
        ("semaphores", Status.UNSUPPORTED),
    ]


def test_an_unknown_mode_makes_the_semaphores_unsupported() -> None:
    builder = make.Maker()
    builder.step("one", "PE", writes="a", updates=(("s", 1),))
    builder.wait(builder.step("two", "DVE", writes="a", after=(0,)), builder.semaphore("s"), 1, mode=WaitMode.UNKNOWN)
    verdict = check(builder.build())
    assert [order.status for order in verdict.orders] == [Status.OK, Status.UNSUPPORTED]
    assert verdict.status is Status.UNSUPPORTED


def test_only_the_orders_that_a_program_carries_are_checked_and_named() -> None:
    builder = make.Maker()
    builder.step("one", "PE", writes="a")
    builder.step("two", "DVE", writes="a", after=(0,))
    verdict = check(builder.build())
    assert [order.order for order in verdict.orders] == ["dependencies"]
    assert verdict.notes == ("the program has no semaphores: checked by its dependencies only",)
    with pytest.raises(ValueError, match="neither"):
        check(builder.build(), order="neither")


def _many_races() -> EngineProgram:
    builder = make.Maker()
    for at in range(12):
        builder.step(f"I{at}", f"E{at % 4}", writes="a")
    return builder.build()


def test_first_only_and_limits() -> None:
    program = _many_races()
    every = check(program).orders[0]
    assert (len(every.races), every.race_count) == (54, 54)
    few = check(program, options=Options(limit=5)).orders[0]
    assert (len(few.races), few.race_count) == (5, 54)
    assert few.races == every.races[:5]
    (first,) = check(program, options=Options(first_only=True)).orders[0].races
    assert first in every.races


def test_more_pairs_than_are_looked_at_are_never_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    from racefree.engines import check as whole
    from racefree.engines import footprints, scan

    monkeypatch.setattr(scan, "LARGEST_LIST", 10)
    monkeypatch.setattr(whole, "LARGEST_LIST", 10)
    monkeypatch.setattr(scan, "SMALLEST_LIST", 4)
    verdict = check(_many_races())
    assert [refusal.kind for refusal in verdict.refusals] == ["too-many-pairs"]
    monkeypatch.setattr(footprints, "MOST_CONFLICTS", 0)
    verdict = check(_many_races())
    assert (verdict.status, [refusal.kind for refusal in verdict.refusals]) == (Status.UNSUPPORTED, ["too-many-pairs"])


def test_the_answer_is_the_same_every_time() -> None:
    one, other = (replace(check(_many_races()).orders[0], seconds=0) for _ in range(2))
    assert one == other


def test_an_empty_program_is_ok() -> None:
    assert check(make.Maker().build()).status is Status.OK


@pytest.mark.parametrize("order", ["dependencies", "semaphores"])
def test_compiled_and_interpreted_kernels_agree(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import random

    from racefree.engines import compiled

    programs = [make.random_program(random.Random(seed), 60, 4, exact_waits=False) for seed in range(6)]
    programs += [make.random_program_with_resets(random.Random(seed), 40, 3) for seed in range(6)]
    answers = []
    for least in (10**9, 0):
        monkeypatch.setattr(compiled, "COMPILED_FROM", least)
        monkeypatch.setattr(compiled, "COMPILED_FROM_LOADED", least)
        answers.append([replace(check(program, order=order).orders[0], seconds=0) for program in programs])
    assert answers[0] == answers[1]
