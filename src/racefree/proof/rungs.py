"""Which rung next, and which verdict survives: the strongest claim any rung can defend."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Literal

from racefree.errors import Refusal, Refused
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Access, Program, accesses
from racefree.proof.outcome import Witness
from racefree.proof.records import Recorder
from racefree.verdict import ProofScope, RaceConfigVerdict, Status

Lanes = Literal["default", "strict"]
WantedScope = Literal["any", "launch"]


@dataclass(frozen=True, slots=True)
class Options:
    """How hard to try, and under which ordering rules.

    `lanes="strict"` drops the rule that one thread owns a lane. `scope="launch"` skips strengthening a proof of this launch
    to more launches. `budget` scales the default time budgets of the rungs (1.0).
    """

    lanes: Lanes = "default"
    scope: WantedScope = "any"
    budget: float = 1.0


def decide(program: Program, facts: LaunchFacts, options: Options) -> RaceConfigVerdict:
    """The verdict on one config of one launch."""
    start = time.perf_counter()
    verdict = _decide(program, facts, options)
    return _with(verdict, facts, time.perf_counter() - start)


def _with(verdict: RaceConfigVerdict, facts: LaunchFacts, seconds: float) -> RaceConfigVerdict:
    return RaceConfigVerdict(
        dict(facts.config),
        verdict.status,
        verdict.rung,
        verdict.scope,
        verdict.qualifiers,
        verdict.refusal,
        verdict.grid_fragile,
        verdict.races,
        seconds,
    )


def _decide(program: Program, facts: LaunchFacts, options: Options) -> RaceConfigVerdict:
    if any(n <= 0 for n in facts.grid):
        refusal = Refusal("vacuous", f"the grid {facts.grid} has no program instance")
        return RaceConfigVerdict({}, Status.VACUOUS, refusal=refusal)
    try:
        return _geometry(program, facts, options)
    except Refused as refused:
        return RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refused.refusal)


def _geometry(program: Program, facts: LaunchFacts, options: Options) -> RaceConfigVerdict:
    from racefree.proof.footprint import rung

    found = rung.decide(program, facts, strict=options.lanes == "strict")
    certain = tuple(race for race in found.races if not may_be_ordered(program, race))
    if certain:
        recorder = Recorder(program, facts)
        records = tuple(recorder.record(race) for race in certain)
        return RaceConfigVerdict({}, Status.RACES, "geometry", None, found.qualifiers, races=records)
    if found.races:
        race = found.races[0]
        refusal = Refusal(
            "needs-synchronisation",
            "two programs touch one byte here, and atomics of the kernel may order them",
            race.second.access.site,
        )
        return RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refusal)
    if found.doubt is not None:
        return RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=found.doubt)
    scope = ProofScope.THIS_PARAMS_THIS_GRID
    return RaceConfigVerdict({}, Status.OK, "geometry", scope, found.qualifiers)


def may_be_ordered(program: Program, race: Witness) -> bool:
    """Whether release and acquire atomics of the kernel could order the two executions of a race.

    They could when one program may release after its access and the other acquire before its own; inside one program only
    barriers and dependence order, which the race has been checked against.
    """
    if race.first.program == race.second.program:
        return False
    return any(
        _releases_after(program, one.access) and _acquires_before(program, other.access)
        for one, other in ((race.first, race.second), (race.second, race.first))
    )


def _orders(access: Access) -> bool:
    return access.kind.atomic and (access.scope is None or access.scope.spans_programs)


def _releases_after(program: Program, access: Access) -> bool:
    return any(
        _orders(a)
        and (a.sem is None or a.sem.releases)
        and (a.index >= access.index or _share_loop(program, a, access))
        for a in accesses(program)
    )


def _acquires_before(program: Program, access: Access) -> bool:
    return any(
        _orders(a)
        and (a.sem is None or a.sem.acquires)
        and (a.index <= access.index or _share_loop(program, a, access))
        for a in accesses(program)
    )


def _share_loop(program: Program, a: Access, b: Access) -> bool:
    from racefree.graph.program import For, While, walk

    for statement in walk(program.body):
        if isinstance(statement, For | While):
            inside = {s.index for s in walk((statement,)) if isinstance(s, Access)}
            if a.index in inside and b.index in inside:
                return True
    return False
