"""Generated programs and all their mutants against brute force and the reference, pair by pair, under both orders."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from bir_judge import judge

from racefree.engines.check import check
from racefree.neuron.generate import Options, generate
from racefree.neuron.lowering import lower_all
from racefree.neuron.mutate import MUTATIONS, mutate
from racefree.neuron.reading import from_value
from racefree.verdict import Status

PROGRAMS = 80
"""Each with its thirteen mutants that leave straight-line code: 1,100 documents."""

FENCED = ("M10",)


def small(seed: int) -> Options:
    return Options(seed=seed, instructions=6 + seed % 18, tiles=3 + seed % 5, partitions=8, row_bytes=64)


def test_generated_programs_and_their_mutants_against_brute_force() -> None:
    statuses: Counter[tuple[str, str, Status]] = Counter()
    judged = covered = 0
    for seed in range(PROGRAMS):
        document = generate(small(seed))
        mutants = {name: mutate(document, name, seed) for name in MUTATIONS if name not in FENCED}
        documents = {"": document} | {name: one.document for name, one in mutants.items() if one is not None}
        for name, one in documents.items():
            found = judge(one)
            assert found.differences == (), (seed, name, mutants[name] and mutants[name].change if name else "")
            judged += 1
            covered += not found.uncovered
            for order, verdict in found.found.items():
                statuses[name, order, verdict.status] += 1
    assert judged >= 1000 <= covered
    # Undamaged programs are clean; each kind of damage shows where it must and stays harmless now and then.
    assert statuses["", "dependencies", Status.OK] == statuses["", "semaphores", Status.OK] == PROGRAMS
    assert statuses["M1", "dependencies", Status.RACES] > 0 < statuses["M1", "semaphores", Status.OK]
    for name in ("M2", "M3"):
        assert statuses[name, "semaphores", Status.RACES] > 0 < statuses[name, "dependencies", Status.OK]
    assert statuses["M4", "semaphores", Status.OK] + statuses["M4", "semaphores", Status.RACES] > 0
    assert statuses["M5", "semaphores", Status.UNSUPPORTED] > 0
    assert statuses["M14", "dependencies", Status.UNSUPPORTED] > PROGRAMS // 2


@pytest.mark.parametrize("seed", range(6))
def test_blocks_and_loops_are_clean_until_a_fence_is_weakened(seed: int) -> None:
    options = Options(seed=seed, instructions=24, partitions=8, row_bytes=64, blocks=2 + seed % 2, loop=seed % 2 == 0)
    document = generate(options)
    (program,) = lower_all(from_value(document))
    assert check(program).status is Status.OK
    first = document["functions"][0]["blocks"][0]["name"]
    weakened = [mutate(document, "M10", again) for again in range(30)]
    broken = [one.document for one in weakened if one and f"barrier {first}-" in one.change]
    assert len(broken) > 1
    for one in broken:
        assert check(lower_all(from_value(one))[0]).status is not Status.OK


def test_interleaving_makes_no_race_of_its_own() -> None:
    """M9 rewrites two operands to disjoint columns of one tile: the pair itself never races."""
    for seed in range(30):
        document = generate(small(seed))
        mutant = mutate(document, "M9", seed)
        if mutant is not None:
            assert judge(mutant.document).differences == ()


def test_a_seed_makes_one_document() -> None:
    assert generate(Options(seed=5)) == generate(Options(seed=5)) != generate(Options(seed=6))
    assert mutate(generate(Options(seed=5)), "M2", 1) == mutate(generate(Options(seed=5)), "M2", 1)


def test_a_mutant_leaves_the_document_as_it_was() -> None:
    document = generate(Options(seed=7, blocks=2, instructions=30))
    before = generate(Options(seed=7, blocks=2, instructions=30))
    for name in MUTATIONS:
        for seed in range(3):
            mutant = mutate(document, name, seed)
            assert mutant is None or mutant.document != document
    assert document == before


def test_programs_have_every_kind_of_work() -> None:
    rng = random.Random(0)
    opcodes: set[str] = set()
    for _ in range(5):
        document = generate(Options(seed=rng.randrange(1000), instructions=120, blocks=2))
        for block in document["functions"][0]["blocks"]:
            opcodes |= {one["opcode"] for one in block["instructions"]}
    assert opcodes >= {"DMACopy", "DMATrigger", "Matmult", "TensorCopy", "Activation", "TensorTensor", "TensorScalar",
                       "Memset", "EventSemaphore", "AllEngineBarrier", "GroupResetSemaphores", "Drain"}  # fmt: skip
