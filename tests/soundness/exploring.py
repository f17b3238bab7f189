"""Goes through all sequentially consistent interleavings of a small launch and says whether any leaves two accesses unordered.

Atomics and plain scalars are interleaved. A plain tile is touched right after what comes before it, because what orders it,
and so what it reads unless it races, is the order of the atomics alone. Of interleavings that differ only in the order of
accesses that do not meet, one is run (sleep sets). A tile of atomics happens at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from interleaving import Instance, Node, Run, unordered

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program
from racefree.proof.replay import Event

PATIENCE = 12
"""How often instances that wait in vain look again before they are taken to wait for ever."""

MOST_NODES = 8000
"""Executed lanes of one interleaving; one that takes more is taken for endless, and tells nothing but the races so far."""


@dataclass(frozen=True, slots=True)
class Explored:
    """`race` are the indices of two accesses, or None; `complete` is false when `limit` interleavings were not enough."""

    race: tuple[int, int] | None
    complete: bool
    interleavings: int

    @property
    def status(self) -> str:
        return "races" if self.race is not None else "ok" if self.complete else "unknown"


class Endless(Exception):
    """An instance that goes on and on."""


def explore(program: Program, facts: LaunchFacts, *, limit: int = 3000) -> Explored:
    """The first race found, or none after all interleavings."""
    todo: list[tuple[tuple[int, ...], frozenset[int]]] = [((), frozenset())]
    finished = 0
    while todo:
        prefix, asleep = todo.pop()
        run = Run(program, facts)
        try:
            _settle(run)
            for number in prefix:
                _take(run, number)
            ended, siblings = _finish(run, prefix, asleep)
        except Endless:
            return Explored(unordered(run.nodes, facts) or _inside(run.nodes, facts), False, finished)
        todo.extend(reversed(siblings))
        if not ended:
            continue
        finished += 1
        race = unordered(run.nodes, facts) or _inside(run.nodes, facts)
        if race is not None:
            return Explored(race, True, finished)
        if finished >= limit:
            return Explored(None, not todo, finished)
    return Explored(None, True, finished)


def _finish(
    run: Run, prefix: tuple[int, ...], asleep: frozenset[int]
) -> tuple[bool, list[tuple[tuple[int, ...], frozenset[int]]]]:
    """Runs to the end; whether it got there, and the other choices on the way. `asleep`: choices covered elsewhere."""
    siblings: list[tuple[tuple[int, ...], frozenset[int]]] = []
    while True:
        enabled = run.awake() or _impatient(run)
        if not enabled:
            return True, siblings
        choices = [i for i in enabled if i.number not in asleep]
        if not choices:
            return False, siblings
        known = asleep
        following = []
        for choice in choices:
            apart = frozenset(k for k in known if _independent(run, run.instances[k], choice))
            following.append(((*prefix, choice.number), apart))
            known |= {choice.number}
        siblings.extend(following[1:])
        prefix, asleep = following[0]
        _take(run, choices[0].number)


def _settle(run: Run) -> None:
    """All plain tiles that can be touched are."""
    for instance in run.instances:
        while instance.pending is not None and _is_plain_tile(instance.pending):
            if len(run.nodes) > MOST_NODES:
                raise Endless
            run.step(instance)


def _is_plain_tile(event: Event) -> bool:
    return not event.access.kind.atomic and event.active.shape != ()


def _take(run: Run, number: int) -> None:
    """The instance does its next access, and touches the tiles after it. Polling again without a change puts it to sleep."""
    instance = run.instances[number]
    before = instance.pending
    assert before is not None
    quiet = _changes_nothing(run, before)
    if len(run.nodes) > MOST_NODES:
        raise Endless
    run.step(instance)
    after = instance.pending
    if quiet and after is not None and _same_poll(before, after):
        instance.asleep_on = _bytes_of(before)[0]
    _settle(run)


def _impatient(run: Run) -> list[Instance]:
    """Everybody left sleeps: those that only look a limited number of times go on in the end."""
    for instance in run.instances:
        for _ in range(PATIENCE if not instance.done else 0):
            before = instance.pending
            assert before is not None
            instance.asleep_on = None
            run.step(instance)
            if instance.pending is None or not _same_poll(before, instance.pending):
                _settle(run)
                return run.awake()
            instance.asleep_on = _bytes_of(before)[0]
    return []


def _same_poll(before: Event, after: Event) -> bool:
    same_place = before.index == after.index and np.array_equal(before.addresses, after.addresses)
    return same_place and np.array_equal(np.asarray(before.active), np.asarray(after.active))


def _independent(run: Run, one: Instance, other: Instance) -> bool:
    """Doing the pending accesses of both in either order leads to the same."""
    if one.pending is None or other.pending is None:
        return True
    if set(_bytes_of(one.pending)).isdisjoint(_bytes_of(other.pending)):
        return True
    return _changes_nothing(run, one.pending) and _changes_nothing(run, other.pending)


def _bytes_of(event: Event) -> list[int]:
    starts = event.addresses[np.asarray(event.active)].reshape(-1)
    return [int(start) + k for start in starts for k in range(event.access.element_bytes)]


def _changes_nothing(run: Run, event: Event) -> bool:
    """Every cell stays as it is, its releases included."""
    access = event.access
    if not access.kind.writes:
        return True
    if access.scope is None or not access.scope.spans_programs or access.sem is None or access.sem.releases:
        return False
    return all(run.leaves_unchanged(event, int(lane)) for lane in np.flatnonzero(np.asarray(event.active).reshape(-1)))


def _inside(nodes: list[Node], facts: LaunchFacts) -> tuple[int, int] | None:
    """Two accesses of one instance that neither dependence, nor a barrier, nor one thread orders."""
    by_byte: dict[tuple[int, int], list[Node]] = {}
    for node in nodes:
        for byte in range(node.start, node.stop):
            by_byte.setdefault((node.instance, byte), []).append(node)
    for meeting in by_byte.values():
        for position, first in enumerate(meeting):
            for second in meeting[position + 1 :]:
                one, other = first.event, second.event
                if not (one.access.kind.writes or other.access.kind.writes):
                    continue
                if one.access.kind.atomic and other.access.kind.atomic and first.start == second.start:
                    continue
                if not _ordered_inside(first, second, facts):
                    return min(one.index, other.index), max(one.index, other.index)
    return None


def _ordered_inside(first: Node, second: Node, facts: LaunchFacts) -> bool:
    before, after = first.event, second.event
    if before is after:
        return False
    if before.epoch != after.epoch:
        return True
    if before.first_read is not None and after.depends is not None:
        depends = int(after.depends.reshape(-1)[second.lane])
        if depends >> (before.first_read + first.lane) & 1:
            return True
    if first.lane != second.lane or before.active.shape != after.active.shape:
        return False
    if before.index == after.index or before.active.size >= facts.num_warps * facts.warp_size:
        return True
    return before.active.shape == () and before.first_read is None and after.first_read is None
