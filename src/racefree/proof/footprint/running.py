"""Runs one small program instance where formulas leave open whether a dependence orders two of its accesses.

A mask that switches an atomic off in some lanes, for example, takes the dependence that leads through it away in those lanes.
"""

from __future__ import annotations

from math import prod

from racefree.graph.program import Access, accesses
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.survey import Launch
from racefree.proof.footprint.witness import UNORDERED_INSIDE, pid_of
from racefree.proof.outcome import Side, Witness
from racefree.proof.replay import Rules, Unreplayable, Where, race_inside, shared_bytes

MOST_LANES = 512
MOST_STEPS = 64
"""What each lane depends on is kept read by read, so the instance must be small."""


def race_by_running(launch: Launch, f: Footprint, g: Footprint, program: int, *, strict: bool) -> Witness | None:
    """A race of two accesses inside a program instance; None where there is none, or it cannot be run."""
    if any(prod(access.shape) > MOST_LANES for access in accesses(launch.program)):
        return None
    pair = (f.access.index, g.access.index)
    try:
        found = race_inside(
            launch.program,
            launch.facts,
            pid_of(launch, program),
            pair,
            Rules(strict_lanes=strict),
            max_steps=MOST_STEPS,
        )
        if found is None:
            return None
        shared = shared_bytes(launch.program, launch.facts, found.first, found.second)
    except Unreplayable:
        return None
    if shared is None:
        return None
    by_index = {f.access.index: f.access, g.access.index: g.access}
    first = _side(by_index, found.first, shared.first_address)
    return Witness(first, _side(by_index, found.second, shared.second_address), UNORDERED_INSIDE)


def _side(by_index: dict[int, Access], where: Where, address: int) -> Side:
    return Side(by_index[where.access], where.pid, where.lane, where.iterations, address)
