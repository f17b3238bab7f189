"""Random synchronising programs: no proof where an interleaving races, no race that its own interleaving does not show."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
from building import random_program
from oracle import follow, random_races

from racefree.proof.schedule import Budget, decide, races_among

BUDGET = Budget(transitions=4000, after_race=50)


@pytest.mark.parametrize("first", [0, 20, 40])
def test_verdicts_agree_with_interleavings(first: int) -> None:
    kinds: Counter[str] = Counter()
    for seed in range(first, first + 20):
        program, facts = random_program(seed)
        got = decide(program, facts, budget=BUDGET)
        kinds[got.status] += 1
        seen = random_races(program, facts, 10, seed)
        assert not (got.status == "proved" and seen), (seed, seen)
        for race in got.races:
            if race.first.program != race.second.program:
                pair = tuple(sorted((race.first.access.index, race.second.access.index)))
                assert pair in (follow(program, facts, race.schedule) if race.schedule else seen), (seed, pair)
    assert kinds["proved"] >= 1
    assert kinds["races"] >= 8


@pytest.mark.parametrize("first", [100, 112])
def test_races_of_two_instances_are_races_of_the_launch(first: int) -> None:
    shown = 0
    for seed in range(first, first + 12):
        program, facts = random_program(seed)
        everyone = [(x, y, z) for z in range(facts.grid[2]) for y in range(facts.grid[1]) for x in range(facts.grid[0])]
        for pids in combinations(everyone, 2):
            got = races_among(program, facts, pids)
            for race in () if got is None else got.races:
                assert {race.first.program, race.second.program} <= set(pids)
                if race.first.program != race.second.program:
                    pair = tuple(sorted((race.first.access.index, race.second.access.index)))
                    seen = (
                        follow(program, facts, race.schedule)
                        if race.schedule
                        else random_races(program, facts, 40, seed)
                    )
                    assert pair in seen, (seed, pids, pair)
                    shown += 1
    assert shown > 10
