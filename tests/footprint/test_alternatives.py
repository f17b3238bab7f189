"""Accesses that never both run: told from the conditions, against running every program instance."""

from __future__ import annotations

import random
from itertools import combinations, product

import pytest
from program_builder import I1, I32, Kernel, launch, tensor
from random_programs import generate

from racefree.graph.program import Value
from racefree.proof.footprint.alternatives import alternatives
from racefree.proof.replay.run import run_program
from racefree.proof.rungs import Options, decide
from racefree.verdict import RaceConfigVerdict, Status

PREDICATES = ["eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge"]


def opposite(kernel: Kernel, condition: Value) -> Value:
    return kernel.op("arith.xori", condition, kernel.const(1, I1))


@pytest.mark.parametrize("seed", range(60))
def test_no_instance_carries_out_both(seed: int) -> None:
    program, facts = generate(seed)
    told = alternatives(program)
    for pid in product(*(range(extent) for extent in facts.grid)):
        done = {event.index for event in run_program(program, facts, (pid[0], pid[1], pid[2]))}
        assert not told & set(combinations(sorted(done), 2))


def random_conditions(seed: int) -> Kernel:
    """Stores one after another, each under a condition drawn from two numbers and from earlier conditions, some in loops."""
    rng = random.Random(seed)
    kernel = Kernel()
    out = kernel.tensor("out")
    numbers = [kernel.parameter(name, I32) for name in "ab"]
    conditions = [kernel.cmp(rng.choice(["eq", "sge", "ugt"]), *numbers), kernel.cmp("ne", numbers[0], 1)]

    def condition(numbers: list[Value], conditions: list[Value]) -> Value:
        match rng.randrange(5):
            case 0:
                sides = rng.choice([numbers[:2], rng.choices(numbers, k=2)])
                found = kernel.cmp(rng.choice(["ne", "slt", "ule", "sgt", "uge", "sle", "ult"]), *sides)
            case 1:
                found = opposite(kernel, rng.choice(conditions))
            case 2:
                found = rng.choice(conditions)
            case _:
                found = kernel.op(rng.choice(["arith.andi", "arith.ori", "arith.xori"]), *rng.choices(conditions, k=2))
        conditions.append(found)
        return found

    def body(numbers: list[Value], conditions: list[Value], depth: int) -> None:
        for _ in range(rng.randint(1, 4)):
            kind = rng.randrange(5)
            if depth == 3 or kind == 0:
                kernel.store(out)
            elif kind == 1:
                with kernel.loop(0, 2) as loop:
                    body([*numbers, loop.index], list(conditions), depth + 1)
            else:
                opened = kernel.guard if kind == 2 else kernel.when
                with opened(condition(numbers, conditions)):
                    body(list(numbers), list(conditions), depth + 1)

    body(numbers, conditions, 0)
    return kernel


@pytest.mark.parametrize("batch", range(5))
def test_conditions_on_two_numbers(batch: int) -> None:
    found = 0
    for seed in range(100 * batch, 100 * batch + 100):
        program = random_conditions(seed).program()
        told = alternatives(program)
        found += len(told)
        assert told == {(b, a) for a, b in told}
        for a, b in product([-1, 0, 1], repeat=2):
            facts = launch(1, out=tensor(1 << 20, 4), a=a, b=b)
            done = {event.index for event in run_program(program, facts, (0, 0, 0))}
            assert not told & set(product(done, repeat=2))
    assert found > 0


@pytest.mark.parametrize("first", PREDICATES)
@pytest.mark.parametrize("second", PREDICATES)
def test_every_two_comparisons(first: str, second: str) -> None:
    for taken in product([True, False], repeat=2):
        kernel = Kernel()
        out, a, b = kernel.tensor("out"), kernel.parameter("a", I32), kernel.parameter("b", I32)
        for predicate, holds in zip((first, second), taken, strict=True):
            compared = kernel.cmp(predicate, a, b)
            with kernel.when(compared if holds else opposite(kernel, compared)):
                kernel.store(out)
        program = kernel.program()
        told = (0, 1) in alternatives(program)
        for numbers in product([-1, 0, 1], repeat=2):
            facts = launch(1, out=tensor(1 << 20, 4), a=numbers[0], b=numbers[1])
            both = len(run_program(program, facts, (0, 0, 0))) == 2
            assert not (told and both)
        assert told or first != second or taken[0] == taken[1]


def flagged(*, twin: str) -> RaceConfigVerdict:
    """Two stores to one element by different lanes, each under a condition that a flag of unknown contents decides."""
    kernel = Kernel()
    out, flag = kernel.tensor("out"), kernel.tensor("flag")
    up = kernel.cmp("sgt", kernel.load(flag, element=I32), 0)
    with kernel.when(up):
        kernel.store(kernel.at(out, kernel.arange(64)))
    again = kernel.load(flag, element=I32) if twin == "loaded again" else None
    down = opposite(kernel, up if again is None else kernel.cmp("sgt", again, 0))
    with kernel.when(up if twin == "same" else down):
        kernel.store(kernel.at(out, kernel.sub(kernel.const(63, I32, (64,)), kernel.arange(64))))
    facts = launch(1, num_warps=2, out=tensor(1 << 20, 64), flag=tensor(1 << 25, 1))
    return decide(kernel.program(), facts, Options(scope="launch"))


def test_stores_of_opposite_branches_do_not_meet() -> None:
    assert flagged(twin="").status is Status.OK


@pytest.mark.parametrize("twin", ["same", "loaded again"])
def test_stores_of_branches_that_may_both_be_taken_do(twin: str) -> None:
    assert flagged(twin=twin).status is Status.UNSUPPORTED


@pytest.mark.parametrize("inside", [True, False])
def test_a_condition_of_each_round(inside: bool) -> None:
    """Taken in one round and not in the next, a branch and its opposite both run."""
    kernel = Kernel()
    out, flag = kernel.tensor("out"), kernel.tensor("flag")
    before = kernel.cmp("sgt", kernel.load(flag, element=I32), 0)
    with kernel.loop(0, 2) as loop:
        condition = kernel.cmp("sgt", kernel.load(kernel.at(flag, loop.index), element=I32), 0) if inside else before
        with kernel.when(condition):
            kernel.store(kernel.at(out, kernel.arange(64)))
        with kernel.when(opposite(kernel, condition)):
            kernel.store(kernel.at(out, kernel.sub(kernel.const(63, I32, (64,)), kernel.arange(64))))
    facts = launch(1, num_warps=2, out=tensor(1 << 20, 64), flag=tensor(1 << 25, 2))
    found = decide(kernel.program(), facts, Options(scope="launch"))
    assert found.status is (Status.UNSUPPORTED if inside else Status.OK)
    assert bool(alternatives(kernel.program())) is not inside
