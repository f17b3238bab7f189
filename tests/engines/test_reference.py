"""The specified checker, piece by piece."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import engine_programs as make
import pytest

import racefree
from racefree.engines.program import InstructionFlag
from racefree.engines.reference import checker
from racefree.engines.reference.graph import Engine, Graph, Op, from_basic_block


def _op(*clock: int) -> Op:
    return Op(Engine("E", 0), 0, 0, skip=False, timestamps=list(clock))


def test_the_tick_of_maximize_is_a_plain_maximum_on_integers() -> None:
    for mine, theirs in itertools.product(range(-20, 21), repeat=2):
        op = _op(mine)
        op.maximize(_op(theirs))
        assert op.timestamps == [max(mine, theirs)]


@pytest.mark.parametrize(
    ("one", "other", "less", "concurrent"),
    [
        ((1, 2), (1, 2), False, False),
        ((1, 2), (1, 3), True, False),
        ((1, 3), (1, 2), False, False),
        ((1, 3), (2, 2), False, True),
        ((0, 0), (1, 1), True, False),
    ],
)
def test_less_than_and_concurrent(one: tuple[int, int], other: tuple[int, int], less: bool, concurrent: bool) -> None:
    assert _op(*one).less_than(_op(*other)) is less
    assert _op(*one).concurrent(_op(*other)) is concurrent


def _random_graph(rng: random.Random) -> Graph:
    graph = Graph()
    engines = rng.randrange(1, 6)
    ops = [graph.add_op(f"E{rng.randrange(engines)}", at, skip=False) for at in range(rng.randrange(5, 90))]
    density = rng.choice([0.002, 0.01, 0.05])
    for engine in graph.engines.values():
        for op, following in itertools.pairwise(engine.ops):
            graph.add_edge(op, following)
    for source, target in itertools.combinations(ops, 2):
        if source.engine is not target.engine and rng.random() < density:
            graph.add_edge(source, target)
    graph.compute_timestamps()
    return graph


def _reachable(op: Op) -> set[int]:
    seen: set[int] = set()
    stack = [op]
    while stack:
        for succ in stack.pop().succs:
            if succ.instruction not in seen:
                seen.add(succ.instruction)
                stack.append(succ)
    return seen


@pytest.mark.parametrize("seed", range(40))
def test_clocks_and_windows_find_what_reachability_finds(seed: int) -> None:
    graph = _random_graph(random.Random(seed))
    reach = [_reachable(op) for op in graph.ops]
    expected = {(a, b) for a, b in itertools.combinations(range(len(graph.ops)), 2) if b not in reach[a]}
    assert {
        (a.instruction, b.instruction) for a, b in graph.concurrent_pairs() if a.instruction < b.instruction
    } == expected
    assert {
        (b.instruction, a.instruction) for a, b in graph.concurrent_pairs() if a.instruction > b.instruction
    } == expected


def test_an_asynchronous_instruction_has_a_second_operation_on_its_queue() -> None:
    program = make.load_multiply_copy(racy=False)
    graph = from_basic_block(program, program.blocks[0])
    assert [(op.engine.name, op.instruction) for op in graph.ops if op.instruction == 0] == [("SP", 0), ("queue q", 0)]
    assert [op.instruction for op in graph.engines["queue q"].ops] == [0, 3, 4]


def test_the_first_race_is_raised_with_both_sides() -> None:
    checker.check(make.load_multiply_copy(racy=False))
    with pytest.raises(checker.DataRace) as caught:
        checker.check(make.load_multiply_copy(racy=True))
    assert str(caught.value) == "Data race detected:\nR: a By: I-1\nW: a By: I-3"


def test_all_races_are_listed() -> None:
    builder = make.Maker()
    builder.step("one", "PE", writes="ab")
    builder.step("two", "DVE", writes="a")
    builder.step("three", "Pool", reads="b")
    program = builder.build()
    assert checker.listing(program, checker.collect(program)).splitlines() == [
        "Race 0:",
        "instructions:",
        "  one",
        "  two",
        "data interference:",
        "  W: a By: one",
        "  W: a By: two",
        "Race 1:",
        "instructions:",
        "  one",
        "  three",
        "data interference:",
        "  W: b By: one",
        "  R: b By: three",
    ]


@pytest.mark.parametrize("flag", [InstructionFlag.READS_UNINITIALISED, InstructionFlag.EXEMPT_OPCODE])
@pytest.mark.parametrize("exempt", [0, 1])
def test_an_exempt_instruction_is_neither_source_nor_target(flag: InstructionFlag, exempt: int) -> None:
    builder = make.Maker()
    for at, engine in enumerate(("PE", "DVE")):
        builder.step(f"I{at}", engine, writes="a", flags=flag if at == exempt else InstructionFlag.NONE)
    assert checker.collect(builder.build()) == []


def test_neighbouring_accumulates_are_chained() -> None:
    builder = make.Maker()
    for at, engine in enumerate(("PE", "DVE")):
        builder.step(f"I{at}", engine, writes="a", flags=InstructionFlag.ACCUMULATES)
    assert checker.collect(builder.build()) == []


def test_two_reads_never_race() -> None:
    builder = make.Maker()
    builder.step("one", "PE", reads="a")
    builder.step("two", "DVE", reads="a")
    assert checker.collect(builder.build()) == []


def test_nothing_that_decides_uses_the_reference() -> None:
    """It is the oracle of the fast engine, so the fast engine must not lean on it."""
    root = Path(racefree.__file__).parent
    users = [path for path in root.rglob("*.py") if "engines.reference" in path.read_text()]
    assert {path.parent for path in users} == {root / "engines" / "reference"}
