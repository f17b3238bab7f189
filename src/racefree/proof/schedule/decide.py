"""Decides a launch whose programs meet through atomics, by going through all interleavings at its grid."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from racefree.access import Site
from racefree.errors import Refusal
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program
from racefree.proof.memory_model import MemoryModel, memory_model
from racefree.proof.outcome import Pid, RungResult, Side, Witness
from racefree.proof.replay.memory import pointer_roots, storages_of
from racefree.proof.schedule.explore import Exploration, Explorer
from racefree.proof.schedule.footprints import Footprint, Footprints
from racefree.proof.schedule.inside import Insider
from racefree.proof.schedule.machine import Machine
from racefree.proof.schedule.relevance import relevance
from racefree.proof.schedule.rounds import in_rounds
from racefree.proof.schedule.thread import Entry
from racefree.verdict import ASSUMES_TERMINATION, ONE_THREAD_PER_LANE, READS_CONTENTS, REPLICAS_LOAD_FIRST, ProofScope

RUNG = "schedule"

_Schedule = tuple[tuple[Pid, int, int | None], ...]
"""The atomics that led somewhere, in order: instance, access, value read."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much to try: transitions per group of instances that share atomics, program instances, statements per instance,
    transitions after a first race. `seconds` on the clock are the safety net.

    A group of more than `small_group` instances has too many interleavings unless most of them are alike, or one of the
    first shows a race: it gets a tenth of the transitions. Where these do not suffice, races are looked for among the first
    `opening` instances alone: the others need not have started.
    """

    transitions: int = 60_000
    instances: int = 4096
    statements: int = 200_000
    after_race: int = 300
    small_group: int = 12
    opening: int = 4
    seconds: float = 30.0

    def times(self, factor: float) -> Budget:
        """The same with more transitions and seconds, or fewer."""
        return replace(self, transitions=int(factor * self.transitions), seconds=factor * self.seconds)

    def for_group(self, instances: int) -> int:
        return self.transitions if instances <= self.small_group else self.transitions // 10


def decide(
    program: Program,
    facts: LaunchFacts,
    *,
    strict_lanes: bool = False,
    model: MemoryModel | None = None,
    budget: Budget | None = None,
) -> RungResult:
    """Every interleaving of the launch's program instances: a proof for this launch, races of it, or why neither.

    `strict_lanes` drops the rule that one thread owns a lane; `model` is the row for the launch's Triton by default.
    """
    model = model or memory_model(facts.triton_version, facts.target)
    return _Rung(program, facts, strict_lanes, model, budget or Budget()).run(_everyone(facts))


def races_among(
    program: Program,
    facts: LaunchFacts,
    pids: Sequence[Pid],
    *,
    strict_lanes: bool = False,
    budget: Budget | None = None,
) -> RungResult | None:
    """Races that some instances of the launch run into while the others have not started, or None if none shows."""
    model = memory_model(facts.triton_version, facts.target)
    result = _Rung(program, facts, strict_lanes, model, budget or Budget()).run(list(pids))
    return result if result.status == "races" else None


def _everyone(facts: LaunchFacts) -> list[Pid]:
    x, y, z = (range(extent) for extent in facts.grid)
    return [(i, j, k) for k in z for j in y for i in x]


@dataclass(slots=True)
class _Found:
    """One race or doubt, before it is told as a witness."""

    footprints: tuple[Footprint, Footprint]
    entries: tuple[Entry, Entry]
    at: tuple[int, int]
    programs: tuple[Pid, Pid]
    schedule: _Schedule = ()


@dataclass(slots=True)
class _Rung:
    program: Program
    facts: LaunchFacts
    strict_lanes: bool
    model: MemoryModel
    budget: Budget
    races: list[_Found] = field(default_factory=list)
    doubts: list[_Found] = field(default_factory=list)
    groups_final: bool = True
    blurred: set[int] = field(default_factory=set)
    places: list[tuple[int, int]] = field(default_factory=list)

    def run(self, pids: list[Pid]) -> RungResult:
        if len(pids) > self.budget.instances:
            return _passed(Refusal("schedule-budget", f"{len(pids)} program instances are too many to interleave"))
        footprints = Footprints()
        threads = self.facts.num_warps * self.facts.warp_size
        insider = Insider(footprints, threads, not self.strict_lanes, self.model.known)
        machine = Machine(
            self.program, self.facts, relevance(self.program), footprints, self.model, insider, self.budget.statements
        )
        initial: dict[int, int | None] = {}
        groups = self._explore_all(machine, pids, initial)
        self._collect(footprints, insider, groups, self._openings(machine, groups, initial))
        qualifiers = []
        if any(e.spun for _, e in groups):
            qualifiers.append(ASSUMES_TERMINATION)
        if insider.rule_used:
            qualifiers.append(ONE_THREAD_PER_LANE)
        if insider.replicas_used:
            qualifiers.append(REPLICAS_LOAD_FIRST)
        if machine.contents_read or any(v is not None for v in initial.values()):
            qualifiers.append(READS_CONTENTS)
        return self._answer([e for _, e in groups], tuple(qualifiers))

    # ---- groups of instances that share atomic cells -----------------------------------------------------------------

    def _explore_all(
        self, machine: Machine, pids: list[Pid], initial: dict[int, int | None]
    ) -> list[tuple[list[Pid], Exploration]]:
        """Instances that share no atomic cell never order each other, so each group is explored alone."""
        deadline = time.monotonic() + self.budget.seconds
        groups = [[pid] for pid in pids]
        known: dict[tuple[Pid, ...], Exploration] = {}
        while True:
            for group in groups:
                key = tuple(group)
                if key not in known:
                    explorer = self._explorer(machine, group, initial)
                    known[key] = explorer.run(self.budget.after_race, deadline)
                    if known[key].over_budget and time.monotonic() > deadline:
                        self.groups_final = False
                        return [(g, known[tuple(g)]) for g in groups if tuple(g) in known]
            again = [known[tuple(g)] for g in groups]
            fresh = [p for e in again for p in e.missed if p not in self.places]
            dim = set().union(*(e.blurred for e in again)) - self.blurred
            if fresh or dim:
                self.places = [*self.places, *dict.fromkeys(fresh)]
                self.blurred = self.blurred | dim
                known = {}
                machine.insider.forget()
                continue
            merged = _merge(groups, again)
            if len(merged) == len(groups):
                return [(g, known[tuple(g)]) for g in groups]
            groups = merged

    def _explorer(self, machine: Machine, group: list[Pid], initial: dict[int, int | None]) -> Explorer:
        allowed = self.budget.for_group(len(group))
        return Explorer(machine, group, blurred=self.blurred, places=self.places, initial=initial, budget=allowed)

    def _openings(
        self, machine: Machine, groups: list[tuple[list[Pid], Exploration]], initial: dict[int, int | None]
    ) -> list[tuple[list[Pid], Exploration]]:
        """What the first instances of each group do that has too many interleavings: it tells of races, and proves nothing."""
        deadline = time.monotonic() + self.budget.seconds
        out = []
        for pids, explored in groups:
            if explored.over_budget and not explored.races and len(pids) > self.budget.opening:
                few = pids[: self.budget.opening]
                found = self._explorer(machine, few, initial).run(self.budget.after_race, deadline)
                if not found.blurred - self.blurred and all(place in self.places for place in found.missed):
                    out.append((few, replace(found, doubts=[])))
        return out

    # ---- collecting --------------------------------------------------------------------------------------------------

    def _collect(
        self,
        footprints: Footprints,
        insider: Insider,
        groups: list[tuple[list[Pid], Exploration]],
        openings: list[tuple[list[Pid], Exploration]],
    ) -> None:
        every = footprints.all
        for pids, explored in (*groups, *openings):
            for pairs, into in ((explored.races, self.races), (explored.doubts, self.doubts)):
                for pair in pairs:
                    first, second = pair.entries
                    schedule = tuple((pids[m], a, v) for m, a, v in pair.schedule)
                    sides = (every[first.footprint], every[second.footprint])
                    programs = (pids[pair.programs[0]], pids[pair.programs[1]])
                    at = (pair.meeting.first, pair.meeting.second)
                    self._file(into, _Found(sides, pair.entries, at, programs, schedule))
        for finding in insider.findings:
            into = self.races if finding.finding == "race" else self.doubts
            sides = (every[finding.first.footprint], every[finding.second.footprint])
            programs = (finding.instance, finding.instance)
            self._file(into, _Found(sides, (finding.first, finding.second), finding.at, programs))
        if not self.groups_final:
            return  # two groups may still share a cell, and then order or exclude each other
        for found, certain in _across(footprints, groups):
            self._file(self.races if certain else self.doubts, found)

    def _file(self, into: list[_Found], found: _Found) -> None:
        """A place outside the tensor an access belongs to is no race of this launch, but no proof either."""
        if into is self.races and not self._inside_storage(found):
            into = self.doubts
        into.append(found)

    def _inside_storage(self, found: _Found) -> bool:
        return all(
            self._owns(f.access.index, int(f.addresses[k]), f.access.element_bytes)
            for f, k in zip(found.footprints, found.at, strict=True)
        )

    def _owns(self, access: int, address: int, size: int) -> bool:
        names = pointer_roots(self.program)[access]
        arguments = self.facts.arguments
        wanted = LaunchFacts("", (1, 1, 1), {k: v for k, v in arguments.items() if names is None or k in names})
        return any(s.address <= address and address + size <= s.address + s.nbytes for s in storages_of(wanted))

    # ---- answering ---------------------------------------------------------------------------------------------------

    def _answer(self, explored: list[Exploration], qualifiers: tuple[str, ...]) -> RungResult:
        if self.races:
            races = tuple(in_rounds(self.program, self.facts, w) for w in self._witnesses(self.races))
            return RungResult(RUNG, "races", races=races, qualifiers=qualifiers)
        refusal = next((e.stuck for e in explored if e.stuck), None)
        if refusal is not None:
            return _passed(refusal)
        if self.doubts:
            witness = next(self._witnesses(self.doubts))
            return _passed(Refusal("potential-race", _doubt(witness), witness.second.access.site))
        hazard: Site | None = next((e.hazard for e in explored if e.hazard), None)
        if hazard is not None:
            return _passed(
                Refusal("relaxed-order", "relaxed atomics on two locations may be seen out of order", hazard)
            )
        if any(e.over_budget for e in explored):
            return _passed(
                Refusal("schedule-budget", "the programs interleave in too many ways to go through them all")
            )
        if not all(e.ended for e in explored):
            return _passed(Refusal("vacuous", "no interleaving lets every program instance end"))
        return RungResult(RUNG, "proved", scope=ProofScope.THIS_PARAMS_THIS_GRID, qualifiers=qualifiers)

    def _witnesses(self, found: list[_Found]) -> Iterator[Witness]:
        """One witness per pair of accesses, in source order."""
        best: dict[tuple[int, int, bool], Witness] = {}
        for each in found:
            witness = _witness(each)
            key = (witness.first.access.index, witness.second.access.index, each.programs[0] == each.programs[1])
            held = best.get(key)
            if held is None or len(witness.schedule) < len(held.schedule):
                best[key] = witness
        for key in sorted(best):
            yield best[key]


def _merge(groups: list[list[Pid]], explored: list[Exploration]) -> list[list[Pid]]:
    owner: dict[int, int] = {}
    parent = list(range(len(groups)))

    def root(k: int) -> int:
        while parent[k] != k:
            k = parent[k]
        return k

    for number, exploration in enumerate(explored):
        for byte in exploration.touched:
            first = owner.setdefault(byte, number)
            a, b = sorted((root(first), root(number)))
            parent[b] = a
    merged: dict[int, list[Pid]] = {}
    for number, group in enumerate(groups):
        merged.setdefault(root(number), []).extend(group)
    return list(merged.values())


@dataclass(frozen=True, slots=True)
class _Span:
    """What an execution spans. `stale`: it was seen only after a stale read."""

    start: int
    end: int
    group: int
    member: int
    entry: Entry
    stale: bool


def _across(footprints: Footprints, groups: list[tuple[list[Pid], Exploration]]) -> Iterator[tuple[_Found, bool]]:
    """Conflicts between instances of different groups: nothing ever orders those. A sweep over the bytes they span."""
    active: list[_Span] = []
    seen: set[tuple[int, int]] = set()
    for span in sorted(_spans(footprints, groups), key=lambda s: (s.start, s.end)):
        active = [a for a in active if a.end > span.start]
        new = footprints.all[span.entry.footprint]
        for other in active:
            old = footprints.all[other.entry.footprint]
            if other.group == span.group or not (old.writes or new.writes):
                continue
            met = footprints.between_programs(old.number, new.number)
            if met is None:
                continue
            certain = met.certain and not span.stale and not other.stale
            key = (min(old.access.index, new.access.index), max(old.access.index, new.access.index))
            if certain and key in seen:
                continue
            if certain:
                seen.add(key)
            (first, before), (second, behind) = (_way_to(s, groups) for s in (other, span))
            sides = (old, new), (other.entry, span.entry), (met.first, met.second)
            yield _Found(*sides, (first, second), (*before, *behind)), certain
        active.append(span)


def _spans(footprints: Footprints, groups: list[tuple[list[Pid], Exploration]]) -> Iterator[_Span]:
    for group, (_, explored) in enumerate(groups):
        for member, mine in enumerate(explored.entries):
            for entry, stale in mine.items():
                footprint = footprints.all[entry.footprint]
                start, last = int(footprint.addresses[0]), int(footprint.addresses[-1])
                yield _Span(start, last + footprint.access.element_bytes, group, member, entry, stale)


def _way_to(span: _Span, groups: list[tuple[list[Pid], Exploration]]) -> tuple[Pid, _Schedule]:
    """The instance of an execution, and the atomics of its group that led there."""
    pids, explored = groups[span.group]
    steps = explored.behind[span.member][span.entry].steps()
    return pids[span.member], tuple((pids[member], access, value) for member, access, value in steps)


def _witness(found: _Found) -> Witness:
    sides = []
    for footprint, entry, position, program in zip(
        found.footprints, found.entries, found.at, found.programs, strict=True
    ):
        shape = footprint.access.shape
        lane = tuple(int(k) for k in np.unravel_index(int(footprint.lanes[position]), shape)) if shape else ()
        address = int(footprint.addresses[position])
        sides.append(Side(footprint.access, program, lane, entry.iterations, address))
    same = found.programs[0] == found.programs[1]
    if not same and sides[1].access.index < sides[0].access.index:
        sides.reverse()
    reason = (
        "nothing orders the two lanes inside one program instance"
        if same
        else "no release and acquire order the two program instances"
    )
    return Witness(sides[0], sides[1], reason, found.schedule)


def _doubt(witness: Witness) -> str:
    first, second = witness.first.access.site, witness.second.access.site
    return f"lines {first.line} and {second.line} may meet on a byte, and their order cannot be told"


def _passed(refusal: Refusal) -> RungResult:
    return RungResult(RUNG, "passed", refusal=refusal)
