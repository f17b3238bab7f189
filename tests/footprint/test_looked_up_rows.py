"""Rows whose place is looked up in a tensor: decided row by row, not element by element, whatever the table holds."""

from __future__ import annotations

import random
from itertools import combinations

import pytest
from launch_values import reduce_to
from program_builder import I32, Kernel, launch, tensor

from racefree.graph.launch import LaunchFacts
from racefree.proof.footprint import listing
from racefree.proof.rungs import Options, decide
from racefree.verdict import READS_CONTENTS, RaceConfigVerdict, Status

STRIDE = 16
ALIAS = 1 << 28
"""ALIAS * STRIDE wraps to 0 at 32 bits."""


def looked_up(table: list[int], lanes: int, picked: int) -> tuple[Kernel, LaunchFacts]:
    """Program p stores out[table[p] * STRIDE + lane] for all lanes, and loads out[table[p] * STRIDE + picked]."""
    kernel = Kernel()
    out, rows = kernel.tensor("out"), kernel.tensor("rows")
    start = kernel.mul(kernel.load(kernel.at(rows, kernel.pid()), element=I32), STRIDE)
    kernel.store(kernel.at(out, kernel.add(start, kernel.arange(lanes))))
    kernel.load(kernel.at(out, kernel.add(start, picked)))
    facts = launch(len(table), out=tensor(1 << 20, 1 << 14), rows=tensor(1 << 40, len(table), contents=table))
    return kernel, facts


def verdict(table: list[int], lanes: int, picked: int) -> RaceConfigVerdict:
    kernel, facts = looked_up(table, lanes, picked)
    return decide(kernel.program(), facts, Options(scope="launch"))


def races(table: list[int], lanes: int, picked: int) -> bool:
    starts = [reduce_to(row * STRIDE, 32) for row in table]
    stored = [{reduce_to(start + lane, 32) for lane in range(lanes)} for start in starts]
    loaded = [reduce_to(start + picked, 32) for start in starts]
    between = any(
        stored[p] & stored[q] or loaded[p] in stored[q] or loaded[q] in stored[p]
        for p, q in combinations(range(len(table)), 2)
    )
    return between or any(one in own for one, own in zip(loaded, stored, strict=True))


@pytest.mark.parametrize("seed", range(60))
def test_equals_all_elements_listed(seed: int) -> None:
    draw = random.Random(seed)
    table = draw.sample(range(40), draw.randint(2, 6))
    if draw.random() < 0.4:
        table[0] = draw.choice([table[1], table[1] + ALIAS, table[1] + 2 * ALIAS, 500 + ALIAS])
    lanes, picked = draw.choice([1, 8, 16, 17, 32]), draw.choice([0, 7, 16, 31, 33, 64])
    found = verdict(table, lanes, picked)
    assert found.status is (Status.RACES if races(table, lanes, picked) else Status.OK), (table, lanes, picked)
    assert READS_CONTENTS in found.qualifiers


def test_no_element_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> listing.Listing:
        raise AssertionError("elements were listed one by one")

    monkeypatch.setattr(listing, "listed", never)
    table = random.Random(0).sample(range(1000), 400)
    assert verdict(table, lanes=16, picked=STRIDE * 1000).status is Status.OK
    assert verdict([*table[:-1], table[0]], lanes=16, picked=STRIDE * 1000).status is Status.RACES
