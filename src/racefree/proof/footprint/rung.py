"""Decides one launch from its footprints: disjoint, or a race that is shown, or not decided and why."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np

from racefree.errors import Refusal, Refused
from racefree.geometry import PatternArray
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Access, Program, accesses
from racefree.proof.footprint import between, depend, listing, within
from racefree.proof.footprint.alternatives import alternatives
from racefree.proof.footprint.between import Meeting, Reach
from racefree.proof.footprint.depend import Dependences
from racefree.proof.footprint.early import early_loads
from racefree.proof.footprint.evaluate import Footprint
from racefree.proof.footprint.order import Rules, perhaps, rules
from racefree.proof.footprint.pairs import may_meet, pairs_that_may_meet
from racefree.proof.footprint.possible import Flows, possible_dependences
from racefree.proof.footprint.running import race_by_running
from racefree.proof.footprint.shadow import Lattice, Merged, Shadow, cover, merged, present
from racefree.proof.footprint.survey import Chunk, Facts, Launch, prepare, survey
from racefree.proof.footprint.values import I64, Region, Unknown
from racefree.proof.footprint.within import Question
from racefree.proof.footprint.witness import between_race, within_race
from racefree.proof.outcome import Witness
from racefree.verdict import (
    ASSUMES_IN_BOUNDS,
    ASSUMES_TERMINATION,
    ONE_THREAD_PER_LANE,
    READS_CONTENTS,
    REDUCTIONS_SYNCHRONISE,
    REPLICAS_LOAD_FIRST,
)

MOST_PARTS = 1 << 25

Part = tuple[I64, Lattice | Merged]
"""Patterns of one access, and the program that owns each."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What the footprints tell. `races` are certain as far as addresses go; `doubt` is what kept this from being a proof."""

    races: tuple[Witness, ...]
    doubt: Refusal | None
    qualifiers: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class _State:
    launch: Launch
    strict: bool
    dependences: Dependences
    possible: dict[int, Flows]
    alternatives: frozenset[tuple[int, int]]
    used: Facts = field(default_factory=Facts)
    assumed: set[str] = field(default_factory=set)
    races: list[Witness] = field(default_factory=list)
    doubts: list[Refusal] = field(default_factory=list)
    seen: set[tuple[int, int]] = field(default_factory=set)
    may: dict[int, list[Part]] = field(default_factory=lambda: defaultdict(list))
    must: dict[int, list[Part]] = field(default_factory=lambda: defaultdict(list))
    kept: int = 0
    widened: set[int] = field(default_factory=set)
    why: dict[int, Unknown | None] = field(default_factory=dict)


def decide(program: Program, facts: LaunchFacts, *, strict: bool) -> Decision:
    """The verdict of the geometry rung on this launch. Raises `Refused` when the footprints cannot be evaluated."""
    return _decision(prepare(program, facts), strict=strict)


def decide_early(program: Program, facts: LaunchFacts, *, strict: bool) -> Decision | None:
    """The same of a run whose early loads find what was there before the launch; None where no load is early.

    Its races are races of the launch unless atomics keep the two executions apart. If it has none, and leaves no doubt, neither
    has the launch: in a run that differs some early load is the first to find what another program has stored, and up to there
    all is as in this run, which would then have had that race. Raises `Refused` like `decide`.
    """
    launch = prepare(program, facts)
    early = early_loads(launch)
    if not early:
        return None
    found = _decision(replace(launch, early=early), strict=strict)
    return replace(found, races=tuple(replace(race, early=early) for race in found.races))


def _decision(launch: Launch, *, strict: bool) -> Decision:
    state = _looked_through(launch, strict=strict)
    unplaced = {index: why for index, why in state.used.unplaced.items() if index not in launch.excluding}
    if len(unplaced) < len(state.used.unplaced):
        state.assumed.add(ASSUMES_IN_BOUNDS)
    qualifiers = sorted(state.assumed)
    if state.used.assumes_termination:
        qualifiers.append(ASSUMES_TERMINATION)
    if state.used.reads_contents:
        qualifiers.append(READS_CONTENTS)
    doubt = next(iter(unplaced.values()), None) or next(iter(state.doubts), None)
    return Decision(tuple(state.races), doubt, tuple(qualifiers), tuple(sorted(state.used.notes)))


def _looked_through(launch: Launch, *, strict: bool) -> _State:
    """All that the footprints tell."""
    program = launch.program
    flows = possible_dependences(program)
    state = _State(launch, strict, depend.dependences(program), flows, alternatives(program))
    for chunk in survey(launch, state.used):
        _require_places(state)
        _collect(state, chunk)
        _within(state, chunk)
    _between(state)
    return state


def _require_places(state: _State) -> None:
    """A write to an unknown place may only go where its tensors are, or nothing read from a tensor can be relied on."""
    for index, why in state.used.unplaced.items():
        if index in state.launch.loose:
            raise Refused(why.kind, why.reason, why.source)


# ---- collecting ------------------------------------------------------------------------------------------------------


def _collect(state: _State, chunk: Chunk) -> None:
    for footprint, may, must in zip(chunk.footprints, chunk.may, chunk.must, strict=True):
        index = footprint.access.index
        if may is None:
            continue
        if not footprint.where.exact:
            state.widened.add(index)
            state.why.setdefault(index, footprint.where.why)
        kept = _kept(state, may, chunk.programs)
        state.may[index].append(kept)
        if must is may:
            state.must[index].append(kept)
        elif must is not None:
            state.must[index].append(_kept(state, must, chunk.programs))


def _kept(state: _State, part: Shadow, programs: I64) -> Part:
    if isinstance(part, Lattice):
        state.kept += len(part.rows)
        kept: Part = (programs[part.rows], part)
    else:
        ranges = merged(part, programs)
        state.kept += len(ranges.starts)
        kept = (ranges.programs, ranges)
    if state.kept > MOST_PARTS:
        raise Refused("memory-budget", "the launch touches too many separate byte ranges", state.launch.program.site)
    return kept


def _reach(access: Access, parts: list[Part], cluster: int, state: _State) -> Reach | None:
    """All the parts of an access that lie in one cluster, as patterns with their programs, relative to the cluster."""
    patterns: list[PatternArray] = []
    owners: list[I64] = []
    phases: set[int | None] = set()
    start = state.launch.space.origin(cluster)
    for programs, part in parts:
        array = _patterns(part)
        keep = np.flatnonzero(state.launch.space.home(array.base) == cluster)
        if not len(keep):
            continue
        if len(keep) < len(array):
            array = array.take(keep)
        patterns.append(PatternArray(array.base - start, array.elem, array.steps, array.counts))
        owners.append(programs[keep])
        phases |= part.phases if isinstance(part, Merged) else _phases(array, access.element_bytes)
    if not patterns:
        return None
    return Reach(access, _joined(patterns), np.concatenate(owners), frozenset(phases))


def _patterns(part: Lattice | Merged) -> PatternArray:
    if isinstance(part, Lattice):
        return part.patterns()
    empty = np.zeros((len(part.starts), 0), dtype=np.int64)
    return PatternArray(part.starts, part.ends - part.starts, empty, empty)


def _phases(array: PatternArray, size: int) -> set[int | None]:
    """The residues of the elements' addresses by their size; None stands for many."""
    if (array.steps % size).any():
        return {None}
    return set(np.unique(array.base % size).tolist())


def _joined(parts: list[PatternArray]) -> PatternArray:
    if len(parts) == 1:
        return parts[0]
    depth = max(p.steps.shape[1] for p in parts)

    def pad(array: I64, fill: int) -> I64:
        missing = np.full((len(array), depth - array.shape[1]), fill, dtype=np.int64)
        return np.concatenate([array, missing], axis=1)

    return PatternArray(
        np.concatenate([p.base for p in parts]),
        np.concatenate([p.elem for p in parts]),
        np.concatenate([pad(p.steps, 0) for p in parts]),
        np.concatenate([pad(p.counts, 1) for p in parts]),
    )


def _homes(state: _State, index: int) -> frozenset[int]:
    """The clusters an access goes to; off every cluster means an address this rung cannot place."""
    out: set[int] = set()
    for _, part in state.may[index]:
        out |= {int(h) for h in np.unique(state.launch.space.home(_patterns(part).base))}
    return frozenset(out)


# ---- between programs ------------------------------------------------------------------------------------------------


def _between(state: _State) -> None:
    by_index = {a.index: a for a in accesses(state.launch.program)}
    homes = {index: _homes(state, index) for index in sorted(state.may)}
    for index, where in homes.items():
        site = by_index[index].site
        if index not in state.launch.loose and where - state.launch.places[index]:
            raise Refused("indirect-address", "an address lies in no tensor that its pointer points into", site)
        if -1 in where and _strays(state, index):
            raise Refused("indirect-address", "a pointer made from an integer runs into a tensor of the launch", site)
        if index in state.launch.loose and by_index[index].kind.writes and where & state.used.read_clusters:
            raise Refused(
                "indirect-address", "a pointer made from an integer may overwrite what addresses hang on", site
            )
    if any(_leaves(state, index) for index in homes):
        state.assumed.add(ASSUMES_IN_BOUNDS)
    reaches: dict[tuple[int, int, bool], Reach | None] = {}

    def reach(index: int, cluster: int, *, must: bool) -> Reach | None:
        key = (index, cluster, must)
        if key not in reaches:
            parts = (state.must if must else state.may)[index]
            reaches[key] = _reach(by_index[index], parts, cluster, state)
        return reaches[key]

    if state.launch.programs < 2:
        return
    for i in sorted(state.may):
        for j in sorted(state.may):
            if j < i or not may_meet(by_index[i], by_index[j]):
                continue
            for cluster in sorted(homes[i] & homes[j]):
                a, b = reach(i, cluster, must=False), reach(j, cluster, must=False)
                if a is None or b is None or _exempt(a, b):
                    continue
                found = between.meeting(a, b)
                if found is None:
                    continue
                if {i, j} & state.widened:
                    _doubt_or_race(state, reach(i, cluster, must=True), reach(j, cluster, must=True), cluster, i, j)
                else:
                    _add_race(state, a.access, b.access, found, cluster)


def _leaves(state: _State, index: int) -> bool:
    """Whether an access may run out of the storages it starts in; what lies behind them is not the launch's to know."""
    space = state.launch.space
    for _, part in state.may[index]:
        patterns = _patterns(part)
        home = space.home(patterns.base)
        starts, ends = patterns.spans()
        for number, cluster in enumerate(space.clusters):
            inside = home == number
            low, high = cluster.start + cluster.shift, cluster.end + cluster.shift
            if ((starts[inside] < low) | (ends[inside] > high)).any():
                return True
    return False


def _strays(state: _State, index: int) -> bool:
    """Whether addresses that start outside every tensor reach into one."""
    for _, part in state.may[index]:
        patterns = _patterns(part)
        starts, ends = patterns.take(state.launch.space.home(patterns.base) < 0).spans()
        for cluster in state.launch.space.clusters:
            if ((starts < cluster.end) & (cluster.start < ends)).any():
                return True
    return False


def _add_race(state: _State, a: Access, b: Access, found: Meeting, cluster: int) -> None:
    race = between_race(state.launch, a, b, _moved(state, found, cluster))
    if _atomic_together(a, b) and race.first.address_bytes == race.second.address_bytes:
        reason = "atomics of two programs meet here on one element, and others of them may meet on a part of one"
        state.doubts.append(Refusal("potential-race", reason, b.site))
    else:
        state.races.append(race)


def _moved(state: _State, found: Meeting, cluster: int) -> Meeting:
    """The meeting with its byte as a virtual address."""
    return Meeting(found.first, found.second, found.byte + state.launch.space.origin(cluster))


def _doubt_or_race(state: _State, a: Reach | None, b: Reach | None, cluster: int, i: int, j: int) -> None:
    found = None if a is None or b is None else between.meeting(a, b)
    if found is not None:
        assert a is not None
        assert b is not None
        _add_race(state, a.access, b.access, found, cluster)
        return
    access = next(x for x in accesses(state.launch.program) if x.index == (i if i in state.widened else j))
    why = state.why.get(access.index)
    reason = "whether it runs is not known" + (f": {why.reason}" if why is not None else "")
    state.doubts.append(Refusal("potential-race", f"two programs may touch one byte here, but {reason}", access.site))


def _exempt(a: Reach, b: Reach) -> bool:
    """Two atomics whose scopes span programs, and that can only meet on exactly the same bytes, do not race."""
    return _atomic_together(a.access, b.access) and same_cells(a, b)


def _atomic_together(a: Access, b: Access) -> bool:
    """Whether the two are atomic for each other, between programs, on an element that both touch whole."""
    scopes = [x.scope is None or x.scope.spans_programs for x in (a, b)]
    return a.kind.atomic and b.kind.atomic and all(scopes) and a.element_bytes == b.element_bytes


def same_cells(a: Reach, b: Reach) -> bool:
    """True when both have one element size and every element starts at a multiple of it (from one common offset)."""
    phases = a.phases | b.phases
    return a.access.element_bytes == b.access.element_bytes and len(phases) == 1 and None not in phases


# ---- within one program ----------------------------------------------------------------------------------------------


def _within(state: _State, chunk: Chunk) -> None:
    rows = len(chunk.programs)
    shadows = {position: found for position, found in enumerate(chunk.may) if found is not None}
    for i, j in pairs_that_may_meet(chunk, shadows, rows, state.alternatives):
        f, g = chunk.footprints[i], chunk.footprints[j]
        if (f.access.index, g.access.index) in state.seen:
            continue
        _within_pair(state, chunk, i, j)


def _within_pair(state: _State, chunk: Chunk, i: int, j: int) -> None:
    """Judge two footprints: nothing to report, ordered under an assumption, a race, or a doubt."""
    f, g, a, b = chunk.footprints[i], chunk.footprints[j], chunk.may[i], chunk.may[j]
    assert a is not None
    assert b is not None
    question = _question(state, f, g, syncs=False)
    bare, rest = _search(chunk, question, a, b, f.where.may, g.where.may)
    if question.rules.replicated and REPLICAS_LOAD_FIRST not in state.assumed:
        kept = tuple(keys for keys in question.rules.always if keys not in question.rules.replicated)
        without = replace(question, rules=replace(question.rules, always=kept, replicated=()))
        if _search(chunk, without, a, b, f.where.may, g.where.may)[1] is not None:
            state.assumed.add(REPLICAS_LOAD_FIRST)
    if f is g and f.repeats and rest is None:
        # Each lane meets itself in another iteration, and only its thread orders the two.
        if state.strict:
            state.seen.add((f.access.index, g.access.index))
            state.doubts.append(_order_unknown(g.access))
        else:
            state.assumed.add(ONE_THREAD_PER_LANE)
    if bare is None:
        return
    if rest is None:
        state.assumed.add(ONE_THREAD_PER_LANE)
        return
    perhaps_synchronised = False
    if not state.strict:
        _, rest = _search(chunk, _question(state, f, g, syncs=True), a, b, f.where.may, g.where.may)
        if rest is None:
            state.assumed |= {ONE_THREAD_PER_LANE, REDUCTIONS_SYNCHRONISE}
            return
        perhaps_synchronised = isinstance(f.epoch.syncs, Unknown) or isinstance(g.epoch.syncs, Unknown)
    found = None if perhaps_synchronised else _certain(state, chunk, question, (chunk.must[i], chunk.must[j]), rest)
    state.seen.add((f.access.index, g.access.index))
    if found is not None:
        state.races.append(within_race(state.launch, f, g, int(chunk.programs[found.row]), found))
        return
    program = int(chunk.programs[rest.row])
    race = None if perhaps_synchronised else race_by_running(state.launch, f, g, program, strict=state.strict)
    if race is None:
        state.doubts.append(_order_unknown(g.access))
    else:
        state.races.append(race)


def _order_unknown(access: Access) -> Refusal:
    reason = "the order of two accesses of one program is not known, and they may touch one byte"
    return Refusal("potential-race", reason, access.site)


def _question(state: _State, f: Footprint, g: Footprint, *, syncs: bool) -> Question:
    given = rules(f, g, state.dependences, state.launch.facts, strict=state.strict)
    if f.repeats or g.repeats:
        given = Rules((), given.owned if f.access.index == g.access.index else ())
    if syncs:
        return Question(f, g, f.epoch.syncs, g.epoch.syncs, given)
    return Question(f, g, f.epoch.barriers, g.epoch.barriers, given)


def _certain(
    state: _State,
    chunk: Chunk,
    question: Question,
    must: tuple[Shadow | None, Shadow | None],
    found: within.Clash,
) -> within.Clash | None:
    """A clash that happens in every case, when the one found rests on a mask or path that is not known."""
    f, g = question.f, question.g
    if f.repeats or g.repeats or isinstance(question.count_f, Unknown) or isinstance(question.count_g, Unknown):
        return None
    rows = len(chunk.programs)
    sure: within.Clash | None = found
    if not (f.where.exact and g.where.exact):
        a, b = must
        sure = None if a is None or b is None else _search(chunk, question, a, b, f.where.must, g.where.must)[1]
    doubts = perhaps(f, g, state.possible, question.rules, state.launch.facts, strict=state.strict)
    if sure is None or not doubts:
        return sure
    asked = replace(question, rules=replace(question.rules, perhaps=doubts))
    # The row of the clash is looked at first; only if everything in it may be ordered are the others.
    for chosen in (np.array([sure.row]), np.arange(rows)):
        rest = listing.listed(asked, f.where.must, g.where.must, chosen, rows).owned
        if rest is not None:
            return rest
    return None


def _search(
    chunk: Chunk, question: Question, a: Shadow, b: Shadow, f_region: Region, g_region: Region
) -> tuple[within.Clash | None, within.Clash | None]:
    """An unordered pair by barriers and dependence alone, and one that remains when a lane is one thread."""
    shown: within.Clash | None = None
    rows = len(chunk.programs)
    if isinstance(a, Lattice) and isinstance(b, Lattice):
        bare = within.clash(question, a, b, owned=False)
        if bare is None:
            return None, None
        if isinstance(bare, within.Clash):
            rest = within.clash(question, a, b, owned=True) if question.rules.owned else bare
            if not isinstance(rest, within.Undecided):
                return bare, rest
            chosen, shown = rest.rows, bare
        else:
            chosen = bare.rows
    elif _apart_though_covered(question, a, b, rows):
        return None, None
    else:
        chosen = np.flatnonzero(present(a, rows) & present(b, rows))
    found = listing.listed(question, f_region, g_region, chosen, rows)
    return found.bare or shown, found.owned


def _apart_though_covered(question: Question, a: Shadow, b: Shadow, rows: int) -> bool:
    """True when not even lattices that hold all the elements, and more, have a pair that barriers and dependence leave open.

    A pair that they have says nothing: the masks may leave it out.
    """
    over_a, over_b = cover(question.f, a, rows), cover(question.g, b, rows)
    return over_a is not None and over_b is not None and within.clash(question, over_a, over_b, owned=False) is None
