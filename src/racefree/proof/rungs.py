"""Which rung next, and which verdict survives: the strongest claim any rung can defend."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from math import prod
from typing import Literal, assert_never

from racefree.errors import Refusal, Refused
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Access, Barrier, Program, accesses, walk
from racefree.graph.unfenced import has_barriers, unfenced
from racefree.proof.confirm import CONFIRMED, confirm
from racefree.proof.handed_results import with_result_barriers
from racefree.proof.memory_model import memory_model
from racefree.proof.outcome import Witness
from racefree.proof.placement import depends_on_addresses
from racefree.proof.records import Recorder
from racefree.verdict import ASSUMES_ADDRESSES, ASSUMES_IN_BOUNDS, ProofScope, RaceConfigVerdict, Status

MANY_PROGRAMS = 12
"""From here on going through all interleavings takes long: a proof for any grid is tried before."""

BRIEFLY = 0.1
"""How much of the budget a first look at interleavings gets: at those of few programs, and of suspected ones among many."""

MOST_SUSPECTS = 8
"""Sets of instances that are run by themselves where there are many programs."""

Lanes = Literal["default", "strict"]
WantedScope = Literal["any", "launch"]


@dataclass(frozen=True, slots=True)
class Options:
    """How hard to try, and under which ordering rules.

    `lanes="strict"` drops the rule that one thread owns a lane. `scope="launch"` skips strengthening a proof of this launch
    to more launches. `budget` scales how long the rungs that search may take (1.0).
    """

    lanes: Lanes = "default"
    scope: WantedScope = "any"
    budget: float = 1.0


def decide(program: Program, facts: LaunchFacts, options: Options) -> RaceConfigVerdict:
    """The verdict on one config of one launch."""
    start = time.perf_counter()
    fenced = with_result_barriers(program)
    model = memory_model(facts.triton_version, facts.target)
    if facts.num_ctas > 1 and has_barriers(fenced):
        verdict = _across_blocks(fenced, facts, options)
    elif model.warps_for_result_barrier is not None and facts.num_warps >= model.warps_for_result_barrier:
        verdict = _decide(fenced, facts, options)
    else:
        verdict = _decide(program, facts, options)
        if verdict.status is Status.RACES and not model.known and fenced is not program:
            verdict = _despite_barriers(fenced, facts, options)
    if verdict.status in (Status.OK, Status.RACES) and depends_on_addresses(program):
        verdict = replace(verdict, qualifiers=(*verdict.qualifiers, ASSUMES_ADDRESSES))
    return replace(verdict, config=dict(facts.config), seconds=time.perf_counter() - start)


def _across_blocks(program: Program, facts: LaunchFacts, options: Options) -> RaceConfigVerdict:
    """The verdict where a program instance spans several blocks: a barrier holds within one, and which lanes are in it is open.

    Measured in PTX: `tl.debug_barrier` stays `bar.sync` whatever the cluster. So a proof must do without barriers, and
    only races between programs that nothing synchronises are certain.
    """
    found = _decide(unfenced(program), facts, options)
    if found.status is not Status.RACES:
        return found
    races = tuple(race for race in found.races if race.programs[0] != race.programs[1])
    if races and not any(a.kind.atomic for a in accesses(program)):
        return replace(found, races=races)
    reason = f"a barrier holds within one block, and a program instance of this launch has {facts.num_ctas}"
    barrier = next(s for s in walk(program.body) if isinstance(s, Barrier))
    return _unsupported(Refusal("several-blocks", reason, barrier.site))


def _despite_barriers(fenced: Program, facts: LaunchFacts, options: Options) -> RaceConfigVerdict:
    """The races of a program that stay whether or not the results of its atomics are handed on through a barrier."""
    found = _decide(fenced, facts, options)
    if found.status is not Status.OK:
        return found
    atomics = {access.site for access in accesses(fenced) if access.kind.atomic}
    handed = next(s for s in walk(fenced.body) if isinstance(s, Barrier) and s.site in atomics)
    reason = (
        "a race unless a barrier hands on the result of an atomic, which was not measured for this Triton and target"
    )
    return _unsupported(Refusal("potential-race", reason, handed.site))


def _decide(program: Program, facts: LaunchFacts, options: Options) -> RaceConfigVerdict:
    if any(n <= 0 for n in facts.grid):
        refusal = Refusal("vacuous", f"the grid {facts.grid} has no program instance")
        return RaceConfigVerdict({}, Status.VACUOUS, refusal=refusal)
    found, suspects = _geometry(program, facts, options)
    # A race behind a loop that waits for other programs is one only if some interleaving gets there.
    waits = any(race.witness != CONFIRMED for race in found.races)
    strengthen = options.scope == "any"
    if (found.status is Status.UNSUPPORTED or waits) and any(a.kind.atomic for a in accesses(program)):
        found, tried = _synchronised(program, facts, options, found, suspects)
        strengthen = strengthen and not tried
    elif found.refusal is not None and found.refusal.kind == "indirect-address" and _follows_stores(program):
        deeper = _schedule(program, facts, options, found)
        found = found if deeper.status is Status.UNSUPPORTED else deeper
    hangs = found.refusal is not None and found.refusal.kind == "vacuous"
    if strengthen and not hangs and found.status in (Status.OK, Status.UNSUPPORTED):
        found = _strengthened(program, facts, options, found)
    return found


def _synchronised(
    program: Program, facts: LaunchFacts, options: Options, found: RaceConfigVerdict, suspects: tuple[Witness, ...]
) -> tuple[RaceConfigVerdict, bool]:
    """What atomics make of a launch that the footprints do not decide, and whether a proof for any grid was looked for."""
    many = prod(facts.grid) > MANY_PROGRAMS
    shown = _among(program, facts, options, suspects) if many else None
    if shown is not None:
        return shown, False
    if options.scope != "any" or found.status is Status.RACES:
        return _schedule(program, facts, options, found), False
    if not many:
        soon = _schedule(program, facts, replace(options, budget=BRIEFLY * options.budget), found)
        if soon.refusal is None or soon.refusal.kind == "vacuous":
            return soon, False
    told = _strengthened(program, facts, options, found)
    return _schedule(program, facts, options, told) if told.status is Status.UNSUPPORTED else told, True


def _geometry(program: Program, facts: LaunchFacts, options: Options) -> tuple[RaceConfigVerdict, tuple[Witness, ...]]:
    """The footprints of this launch: enough whenever no atomic has to order anything. With what may race if none does."""
    from racefree.proof.footprint import rung

    strict = options.lanes == "strict"
    try:
        found = rung.decide(program, facts, strict=strict)
    except Refused as refused:
        return _early(program, facts, refused.refusal, strict=strict), ()
    certain = tuple(race for race in found.races if not may_be_ordered(program, race))
    if certain:
        return _racing("geometry", certain, found.qualifiers, program, facts), certain
    if found.races:
        reason = "two programs touch one byte here, and atomics of the kernel may order them"
        return _unsupported(Refusal("needs-synchronisation", reason, found.races[0].second.access.site)), found.races
    if found.doubt is not None:
        return _early(program, facts, found.doubt, strict=strict), ()
    scope = ProofScope.THIS_PARAMS_THIS_GRID
    return RaceConfigVerdict({}, Status.OK, "geometry", scope, found.qualifiers), ()


def _early(program: Program, facts: LaunchFacts, doubt: Refusal, *, strict: bool) -> RaceConfigVerdict:
    """What the footprints tell where that hangs on written memory, but on what it held before; else the doubt."""
    from racefree.proof.footprint import rung

    if doubt.kind not in ("indirect-address", "potential-race"):
        return _unsupported(doubt)
    try:
        found = rung.decide_early(program, facts, strict=strict)
    except Refused:
        found = None
    if found is None:
        return _unsupported(doubt)
    certain = tuple(race for race in found.races if not may_be_ordered(program, race))
    if certain:
        return _racing("geometry", certain, found.qualifiers, program, facts)
    if found.races or found.doubt is not None:
        return _unsupported(doubt)
    return RaceConfigVerdict({}, Status.OK, "geometry", ProofScope.THIS_PARAMS_THIS_GRID, found.qualifiers)


def _among(
    program: Program, facts: LaunchFacts, options: Options, suspects: tuple[Witness, ...]
) -> RaceConfigVerdict | None:
    """Races that the instances of a suspected one run into by themselves: no other has to have started for that."""
    from racefree.proof import schedule

    strict, budget = options.lanes == "strict", schedule.Budget().times(BRIEFLY * options.budget)
    together = dict.fromkeys(tuple(dict.fromkeys((s.first.program, s.second.program))) for s in suspects)
    found = []
    for pids in list(together)[:MOST_SUSPECTS]:
        try:
            result = schedule.races_among(program, facts, pids, strict_lanes=strict, budget=budget)
        except Refused:
            continue
        found += [] if result is None else [result]
    if not found:
        return None
    races = {(r.first.access.index, r.second.access.index): r for result in found for r in result.races}
    qualifiers = dict.fromkeys(q for result in found for q in result.qualifiers)
    return _racing(found[0].rung, tuple(races[key] for key in sorted(races)), tuple(qualifiers), program, facts)


def _schedule(program: Program, facts: LaunchFacts, options: Options, before: RaceConfigVerdict) -> RaceConfigVerdict:
    """All interleavings of the launch's atomics and deciding loads; `before` stands when they do not decide.

    Where none of them lets all instances end, and none shows a race, no race of `before` is ever got to.
    """
    from racefree.proof import schedule

    budget = schedule.Budget().times(options.budget)
    try:
        result = schedule.decide(program, facts, strict_lanes=options.lanes == "strict", budget=budget)
    except Refused as refused:
        return before if before.status is Status.RACES else _unsupported(refused.refusal)
    match result.status:
        case "proved":
            return RaceConfigVerdict({}, Status.OK, result.rung, result.scope, result.qualifiers)
        case "races":
            return _racing(result.rung, result.races, result.qualifiers, program, facts)
        case "passed":
            hangs = result.refusal is not None and result.refusal.kind == "vacuous"
            if result.refusal is None or (before.status is Status.RACES and not hangs):
                return before
            # Of two refusals of one kind the first is kept: it says where an address comes from.
            again = before.refusal is not None and before.refusal.kind == result.refusal.kind
            return before if again else _unsupported(result.refusal)
        case _:
            assert_never(result.status)


def _strengthened(
    program: Program, facts: LaunchFacts, options: Options, before: RaceConfigVerdict
) -> RaceConfigVerdict:
    """A proof for more launches than this one, where a symbolic rung finds it; else `before`, with what was seen.

    A race that was seen of another grid is evidence; one of this grid is a race of this launch, if plain evaluation confirms
    it. That happens where the launch is too large for what looks at all its programs.
    """
    from racefree.proof.symbolic_rungs import strengthen

    result = strengthen(
        program,
        facts,
        decided=before.status is Status.OK,
        strict_lanes=options.lanes == "strict",
        scale=options.budget,
    )
    if result.status == "proved":
        # A symbolic proof leaves out what lies outside the tensors; whether this launch goes there was seen before.
        strays = tuple(q for q in before.qualifiers if q == ASSUMES_IN_BOUNDS and q not in result.qualifiers)
        return RaceConfigVerdict({}, Status.OK, result.rung, result.scope, (*result.qualifiers, *strays))
    here = tuple(race for race in result.grid_fragile if _in_grid(race, facts))
    if here and before.status is Status.UNSUPPORTED and not any(may_be_ordered(program, race) for race in here):
        found = _racing(result.rung, here, (), program, facts)
        if all(race.witness == CONFIRMED for race in found.races):
            return found
    elsewhere = tuple(race for race in result.grid_fragile if race not in here)
    recorder = Recorder(program, facts)
    return replace(before, grid_fragile=tuple(recorder.record(w, status="solver witness") for w in elsewhere))


def _in_grid(race: Witness, facts: LaunchFacts) -> bool:
    return all(
        at < extent for side in (race.first, race.second) for at, extent in zip(side.program, facts.grid, strict=True)
    )


def _unsupported(refusal: Refusal) -> RaceConfigVerdict:
    return RaceConfigVerdict({}, Status.UNSUPPORTED, refusal=refusal)


def _racing(
    rung: str, races: tuple[Witness, ...], qualifiers: tuple[str, ...], program: Program, facts: LaunchFacts
) -> RaceConfigVerdict:
    """The races, each checked by plain evaluation."""
    recorder = Recorder(program, facts)
    try:
        records = tuple(recorder.record(race, status=confirm(program, facts, race)) for race in races)
    except Refused as refused:
        return _unsupported(refused.refusal)
    return RaceConfigVerdict({}, Status.RACES, rung, None, qualifiers, races=records)


def _follows_stores(program: Program) -> bool:
    """Whether plain loads of single integers, which a store of the launch may change, decide where an instance goes."""
    from racefree.proof.schedule.relevance import relevance

    return bool(relevance(program).synchronising)


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
    from racefree.graph.program import For, While

    for statement in walk(program.body):
        if isinstance(statement, For | While):
            inside = {s.index for s in walk((statement,)) if isinstance(s, Access)}
            if a.index in inside and b.index in inside:
                return True
    return False
