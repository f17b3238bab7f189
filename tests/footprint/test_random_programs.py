"""Footprints and verdicts of random kernels against running every program instance with plain integers."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from random_programs import generate

from racefree.graph.launch import LaunchFacts, Tensor
from racefree.graph.program import For, Program, walk
from racefree.proof.footprint import survey as surveying
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.listing import _epochs
from racefree.proof.footprint.shadow import Lattice, cover, extents_of, merged, points, shadow
from racefree.proof.footprint.survey import Facts, evaluation, prepare
from racefree.proof.footprint.values import I64
from racefree.proof.replay.enumeration import Rules, enumerate_races
from racefree.proof.replay.machine import Unreplayable
from racefree.proof.replay.run import run_program
from racefree.proof.rungs import Options, decide
from racefree.verdict import Status

Execution = tuple[int, int, tuple[int, ...], tuple[int, ...], int, int]
"""Access, program, iterations, lane, virtual address, barriers passed."""


def from_footprints(program: Program, facts: LaunchFacts, *, stepped_up_to: int | None = None) -> Counter[Execution]:
    """Every active element of every footprint; of all programs at once where it is said which loops are stepped."""
    launch = prepare(program, facts)
    found: Counter[Execution] = Counter()
    if stepped_up_to is not None:
        stepped = {id(s): stepped_up_to for s in walk(program.body) if isinstance(s, For)}
        programs = np.arange(launch.programs, dtype=np.int64)
        for footprint in evaluation(launch, programs, stepped).run():
            found += _executions(footprint, programs)
        return found
    for chunk in surveying.survey(launch, Facts()):
        for footprint in chunk.footprints:
            found += _executions(footprint, chunk.programs)
    return found


def _executions(footprint: Footprint, programs: I64) -> Counter[Execution]:
    assert footprint.where.exact
    cells = points(footprint, footprint.where.may, len(programs), 0, 1 << 22)
    if cells is None:
        return Counter()
    extents, loops = extents_of(footprint), len(footprint.loops)
    at = tuple(np.unravel_index(cells.cell, extents)) if extents else ()
    epochs, sure = _epochs(footprint.epoch.barriers, cells.rows, tuple(np.asarray(a, dtype=np.int64) for a in at))
    assert sure.all()
    out: Counter[Execution] = Counter()
    for k in range(len(cells.rows)):
        where = tuple(int(a[k]) for a in at)
        iterations = tuple(t.step if t.axis is None else where[t.axis] for t in footprint.nest)
        program = int(programs[cells.rows[k]])
        out[(footprint.access.index, program, iterations, where[loops:], int(cells.address[k]), int(epochs[k]))] += 1
    return out


def from_replay(program: Program, facts: LaunchFacts) -> Counter[Execution]:
    launch = prepare(program, facts)
    found: Counter[Execution] = Counter()
    for linear in range(launch.programs):
        x, y, z = (int(p[0]) for p in launch.pids(np.array([linear])))
        for event in run_program(program, facts, (x, y, z)):
            if event.index not in launch.slice.relevant:
                continue
            for lane in np.argwhere(event.active):
                position = tuple(int(p) for p in lane)
                real = int(event.addresses[position])
                cluster = next(c for c in launch.space.clusters if c.start <= real < c.end)
                found[(event.index, linear, event.iterations, position, real + cluster.shift, event.epoch)] += 1
    return found


SEEDS = range(25)


@pytest.mark.parametrize("seed", SEEDS)
def test_footprints_hold_every_execution(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program, facts = generate(seed)
    expected = from_replay(program, facts)
    for iterations in (2, 1 << 20):
        assert from_footprints(program, facts, stepped_up_to=iterations) == expected
    assert from_footprints(program, facts) == expected
    monkeypatch.setattr(surveying, "CELL_LIMIT", 200)
    assert from_footprints(program, facts) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_a_lattice_has_every_element_a_cover_holds_it_and_merged_ranges_hold_its_bytes(seed: int) -> None:
    program, facts = generate(seed)
    for chunk in surveying.survey(prepare(program, facts), Facts()):
        rows = len(chunk.programs)
        for footprint in chunk.footprints:
            part = points(footprint, footprint.where.may, rows, 0, 1 << 22)
            if part is None:
                continue
            elements = set(zip(part.rows.tolist(), part.cell.tolist(), part.address.tolist(), strict=True))
            exact = shadow(footprint, footprint.where.may, rows, 0, 1 << 22)
            assert not isinstance(exact, Lattice) or elements == _elements(exact, part.extents)
            over = cover(footprint, part, rows)
            if over is not None:
                assert elements <= _elements(over, part.extents)
            ranges = merged(part, chunk.programs)
            told = {
                (o, b) for o, s, e in zip(ranges.programs, ranges.starts, ranges.ends, strict=True) for b in range(s, e)
            }
            size = part.elem_bytes
            assert told == {(chunk.programs[row], start + i) for row, _, start in elements for i in range(size)}


def _elements(lattice: Lattice, extents: tuple[int, ...]) -> set[tuple[int, int, int]]:
    """(row, cell, address) of every element of a lattice."""
    found = set()
    for row, base, coefs, low, high in zip(
        lattice.rows.tolist(), lattice.base.tolist(), lattice.coefs, lattice.low, lattice.high, strict=True
    ):
        for indices in product(*(range(int(a), int(b)) for a, b in zip(low, high, strict=True))):
            cell = int(np.ravel_multi_index(indices, extents)) if extents else 0
            found.add((row, cell, base + sum(int(c) * i for c, i in zip(coefs, indices, strict=True))))
    return found


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strict", [True, False])
def test_verdicts_agree_with_every_pair_of_executions(seed: int, strict: bool) -> None:
    disagreement = compare_verdict(seed, strict=strict)
    assert disagreement is None


def compare_verdict(seed: int, *, strict: bool) -> str | None:
    program, facts = generate(seed)
    verdict = decide(program, facts, Options(lanes="strict" if strict else "default", scope="launch"))
    try:
        most = enumerate_races(program, facts, Rules(strict_lanes=strict, cross_lanes=False))
        least = enumerate_races(program, facts, Rules(strict_lanes=strict, cross_lanes=True))
    except Unreplayable:
        return "unreplayable"
    if verdict.status is Status.OK and least.races:
        return f"ok, and yet {least.races[0]}"
    if verdict.status is Status.RACES and not most.races:
        return f"races, and yet none: {verdict.races[0]}"
    if verdict.refusal is not None and verdict.refusal.kind == "internal-error":
        return verdict.refusal.reason
    return None


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("strict", [True, False])
def test_verdicts_without_contents_hold_for_all_contents(seed: int, strict: bool) -> None:
    disagreement = compare_without_contents(seed, strict=strict)
    assert disagreement is None


def compare_without_contents(seed: int, *, strict: bool) -> str | None:
    """What is said of a launch whose table was not recorded must be true whatever the table holds."""
    program, facts = generate(seed)
    verdict = decide(program, with_table(facts, None), Options(lanes="strict" if strict else "default", scope="launch"))
    if verdict.refusal is not None and verdict.refusal.kind == "internal-error":
        return verdict.refusal.reason
    if verdict.status is Status.UNSUPPORTED:
        return None
    rng = random.Random(seed)
    for _ in range(3):
        table = [rng.choice([-2, 0, 0, 1, 1, 2, 3, 6]) for _ in range(8)]
        told = with_table(facts, table)
        if verdict.status is Status.OK:
            races = enumerate_races(program, told, Rules(strict_lanes=strict, cross_lanes=True)).races
            if races:
                return f"ok, and yet with {table}: {races[0]}"
        elif not enumerate_races(program, told, Rules(strict_lanes=strict, cross_lanes=False)).races:
            return f"races, and yet none with {table}: {verdict.races[0]}"
    return None


def with_table(facts: LaunchFacts, contents: list[int] | None) -> LaunchFacts:
    table = facts.arguments["table"]
    assert isinstance(table, Tensor)
    held = None if contents is None else np.array(contents, dtype=np.int32).view(np.uint8)
    storage = replace(table.storage, contents=held)
    return replace(facts, arguments={**facts.arguments, "table": replace(table, storage=storage)})
