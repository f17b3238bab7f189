"""Order inside one program instance: what two of its executions that no barrier parts may do to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from racefree.access import Kind
from racefree.proof.outcome import Pid
from racefree.proof.replicas import loads_replicas
from racefree.proof.schedule.footprints import Footprint, Footprints, inside
from racefree.proof.schedule.thread import Entry
from racefree.proof.schedule.values import OLDER, Reads, Val

Finding = Literal["race", "doubt"]


@dataclass(frozen=True, slots=True)
class InsideFinding:
    """Two executions of one instance that share a byte: positions in their footprints."""

    instance: Pid
    first: Entry
    second: Entry
    at: tuple[int, int]
    finding: Finding


@dataclass(slots=True)
class Insider:
    """Collects what accesses of one instance do to each other. `threads` per instance; `one_thread_per_lane` is the rule
    that the same lane of two equal tiles of at least that many elements belongs to one thread. `model_known`: no barriers but
    those that have been seen come between. `instance` is the one that runs."""

    footprints: Footprints
    threads: int
    one_thread_per_lane: bool
    model_known: bool
    rule_used: bool = False
    replicas_used: bool = False
    raced: bool = False
    instance: Pid = (0, 0, 0)
    findings: list[InsideFinding] = field(default_factory=list)
    _checked: set[tuple[object, ...]] = field(default_factory=set)

    def forget(self) -> None:
        """What was found came of not knowing all cells."""
        self.raced = False
        self.findings.clear()
        self._checked.clear()

    def check(self, before: tuple[Entry, ...], entry: Entry, uses: Val, control: Reads) -> None:
        """`before` holds the executions since the last barrier, `uses` and `control` what `entry` depends on."""
        key = (before, entry, uses.lane, uses.every, uses.maybe, control)
        if key in self._checked:
            return
        self._checked.add(key)
        new = self.footprints.all[entry.footprint]
        self._itself(entry, new)
        for old in before:
            self._pair(old, entry, uses, control)

    def _itself(self, entry: Entry, footprint: Footprint) -> None:
        if not footprint.writes:
            return
        met = inside(footprint, footprint, one_execution=True)
        if met.crossed is not None:
            self._found(entry, entry, met.crossed, "race" if met.crossed_certain else "doubt")

    def _pair(self, old: Entry, new: Entry, uses: Val, control: Reads) -> None:
        a, b = self.footprints.all[old.footprint], self.footprints.all[new.footprint]
        met = inside(a, b)
        if met.same is None and met.crossed is None:
            return
        perhaps = old.read in uses.maybe or old.read in control or (old.read == OLDER and OLDER in uses.maybe)
        if met.same is not None and not self._same_lane_ordered(old, a, b, uses):
            racing = self._loads_late(a, b) or (not perhaps and self._stored_once_loaded_by_all(a, b))
            racing = met.same_certain and (racing or self._decided_by_all_written_by_one(old, a, b, uses, control))
            self._found(old, new, met.same, "race" if racing else "doubt")
        if met.crossed is not None and not (old.read >= 0 and old.read in uses.every and a.access.kind.atomic):
            unsure = perhaps or not met.crossed_certain or (old.read >= 0 and old.read in uses.every)
            self._found(old, new, met.crossed, "doubt" if unsure else "race")

    def _same_lane_ordered(self, old: Entry, a: Footprint, b: Footprint, uses: Val) -> bool:
        if (
            old.read >= 0
            and (old.read in uses.lane or old.read in uses.every)
            and a.access.shape in (b.access.shape, ())
            and not self._loads_late(a, b)
        ):
            self.replicas_used = self.replicas_used or loads_replicas(a.access, b.access, self.threads)
            return True
        if not self.one_thread_per_lane or a.access.shape != b.access.shape:
            return False
        if a.access.shape == () and a.writes and b.writes:
            self.rule_used = True
            return True  # one thread does both, in order
        if a.access.element_bytes != b.access.element_bytes:
            return False
        elements = 1
        for extent in a.access.shape:
            elements *= extent
        if elements < self.threads:
            return False
        self.rule_used = True
        return True

    def _loads_late(self, a: Footprint, b: Footprint) -> bool:
        """Without assumptions about threads, a dependence orders the load of one replica alone."""
        return not self.one_thread_per_lane and loads_replicas(a.access, b.access, self.threads)

    def _stored_once_loaded_by_all(self, a: Footprint, b: Footprint) -> bool:
        """A scalar or a small tile is stored by one replica and loaded by all."""
        return a.access.kind is Kind.STORE and b.access.kind is Kind.LOAD

    def _decided_by_all_written_by_one(self, old: Entry, a: Footprint, b: Footprint, uses: Val, control: Reads) -> bool:
        """A scalar that every thread loads, to branch on it, before one thread overwrites it: the others may load too late."""
        one_load = a.access.kind is Kind.LOAD and a.access.shape == () == b.access.shape
        only_decides = old.read >= 0 and old.read in control and old.read not in uses.all_reads
        return self.model_known and one_load and only_decides

    def _found(self, first: Entry, second: Entry, at: tuple[int, int], finding: Finding) -> None:
        self.raced = self.raced or finding == "race"
        self.findings.append(InsideFinding(self.instance, first, second, at, finding))
