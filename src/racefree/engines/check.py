"""Checks an engine program: its races under dependency order, under semaphore order, and where the two disagree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from racefree.engines import loops
from racefree.engines.classify import Pairs, classify, one_per_pair
from racefree.engines.compiler_view import block_view, without_same_address
from racefree.engines.dependencies import dependency_graph, dependency_order, in_queue_order
from racefree.engines.describe import Row, describe
from racefree.engines.disagree import disagreements, stuck_waits
from racefree.engines.footprints import Conflicts, conflicts
from racefree.engines.order import Order, QueueOrder
from racefree.engines.program import I64, Block, EngineProgram
from racefree.engines.records import (
    COMPILER_EXEMPTIONS,
    IN_ORDER_COMPLETION,
    ONE_AT_A_TIME,
    Disagreement,
    EngineRace,
    EngineVerdict,
    MissingEdge,
    OrderVerdict,
)
from racefree.engines.repair import missing_edges
from racefree.engines.scan import LARGEST_LIST, RacingAccesses, racing_accesses
from racefree.engines.semaphores import Deadlock, SemaphoreOrder, semaphore_order
from racefree.engines.timeline import Timelines, unroll
from racefree.errors import Refusal, Refused
from racefree.verdict import Status

DEPENDENCIES, SEMAPHORES, BOTH = "dependencies", "semaphores", "both"
LARGEST_REPAIR = 2_000_000
"""Racing pairs beyond which no set of missing edges is computed."""


@dataclass(frozen=True, slots=True)
class Options:
    """How to check. `limit` is how many records of each kind to spell out; all pairs are counted.

    `first_only` stops each order at its first race. `repair` computes the missing edges. `compiler_exemptions` reproduces
    the compiler's own check: dependencies of one block at a time, exempt instructions invisible, queues completing in order.
    """

    queue_order: QueueOrder = QueueOrder.IGNORED
    first_only: bool = False
    limit: int = 100
    repair: bool = True
    compiler_exemptions: bool = False


def check(program: EngineProgram, *, order: str = BOTH, options: Options | None = None) -> EngineVerdict:
    """The verdict on a program under "dependencies", "semaphores" or "both" (each one that the program carries).

    Deterministic. Raises ValueError for another `order`.
    """
    if order not in (DEPENDENCIES, SEMAPHORES, BOTH):
        raise ValueError(f"order {order!r} is none of {DEPENDENCIES!r}, {SEMAPHORES!r}, {BOTH!r}")
    options = options or Options()
    began = time.monotonic()
    if options.compiler_exemptions:
        return _as_compiler(program, options)
    names, notes = _orders(program, order)
    verdicts: list[OrderVerdict] = []
    found: list[Disagreement] = []
    solved: list[SemaphoreOrder] = []
    try:
        met = conflicts(program)
    except Refused as refused:
        verdicts = [OrderVerdict(name, Status.UNSUPPORTED, refusals=(refused.refusal,)) for name in names]
        names = []
    for name in names:
        verdict, by_semaphores, stuck = _under(program, name, met, options)
        verdicts.append(verdict)
        solved += by_semaphores
        found += stuck
    found += _disagreements(program, solved)
    return EngineVerdict(
        program=program.name,
        status=_worst(verdict.status for verdict in verdicts),
        orders=tuple(verdicts),
        disagreements=tuple(found),
        instructions=len(program),
        engines=program.engines,
        notes=tuple(notes),
        seconds=time.monotonic() - began,
    )


def _as_compiler(program: EngineProgram, options: Options) -> EngineVerdict:
    """What the specified checker reports, whatever it is blind to."""
    began = time.monotonic()
    races: list[EngineRace] = []
    count = 0
    refusals: tuple[Refusal, ...] = ()
    limit = 1 if options.first_only else options.limit
    try:
        for block in program.blocks:
            found, total = _block_races(block_view(program, block), block, limit - len(races))
            races, count = races + found, count + total
    except Refused as refused:
        refusals = (refused.refusal,)
    status = Status.RACES if count else Status.UNSUPPORTED if refusals else Status.OK
    verdict = OrderVerdict(
        order=DEPENDENCIES,
        status=status,
        races=tuple(races),
        race_count=count,
        refusals=refusals,
        qualifiers=(COMPILER_EXEMPTIONS,) if status is Status.OK else (),
        seconds=time.monotonic() - began,
    )
    return EngineVerdict(
        program=program.name,
        status=status,
        orders=(verdict,),
        instructions=len(program),
        engines=program.engines,
        notes=("checked by the compiler's own rules, with its exemptions",),
        seconds=time.monotonic() - began,
    )


def _block_races(view: EngineProgram, block: Block, limit: int) -> tuple[list[EngineRace], int]:
    """Up to `limit` races of one block, with the instructions' places in the whole program, and how many there are."""
    order = dependency_order(unroll(view), queue_order=QueueOrder.COMPLETION)
    racing = without_same_address(view, racing_accesses(order, conflicts(view)))
    rows = one_per_pair(order, racing.rows)
    races: list[EngineRace] = []
    for a, x, b, y in rows.tolist()[:limit]:
        race = describe(order, Row(a, x, b, y), order_name=DEPENDENCIES)
        first = replace(race.first, instruction=race.first.instruction + block.first)
        second = replace(race.second, instruction=race.second.instruction + block.first)
        races.append(replace(race, first=first, second=second))
    return races, len(rows)


@dataclass(frozen=True, slots=True)
class _Solved:
    """One unrolling under one order; `assuming` gives the same order under another assumption about queues."""

    order: Order
    semaphores: SemaphoreOrder | None
    assuming: Callable[[QueueOrder], Order]


def _orders(program: EngineProgram, order: str) -> tuple[list[str], list[str]]:
    if order != BOTH:
        return [order], []
    has_semaphores = len(program.waits) + len(program.updates) > 0
    has_dependencies = len(program.dependencies) > 0
    if has_semaphores and has_dependencies:
        return [DEPENDENCIES, SEMAPHORES], []
    if has_semaphores:
        return [SEMAPHORES], ["the program lists no dependencies: checked by its semaphores only"]
    return [DEPENDENCIES], ["the program has no semaphores: checked by its dependencies only"]


def _under(
    program: EngineProgram, name: str, met: Conflicts, options: Options
) -> tuple[OrderVerdict, list[SemaphoreOrder], list[Disagreement]]:
    began = time.monotonic()
    refusals = [partial.refusal for partial in program.refusals if partial.order in (name, BOTH)]
    solved: list[SemaphoreOrder] = []
    stuck: list[Disagreement] = []
    collected = _Collected(name, options)
    try:
        trips = loops.semaphore_trips(program) if name == SEMAPHORES else loops.dependency_trips(program)
        for times in trips:
            timelines = unroll(program, times)
            step = _solve(timelines, name, options.queue_order)
            loops.refuse_uneven_iterations(step.order, semaphores=name == SEMAPHORES)
            if step.semaphores is not None:
                solved.append(step.semaphores)
            collected.add(step, met)
            if options.first_only and collected.races:
                break
    except Deadlock as deadlock:
        refusals.append(deadlock.refusal)
        stuck = stuck_waits(program, unroll(program, times), deadlock)
        solved = []
    except Refused as refused:
        refusals.append(refused.refusal)
        solved = []
    verdict = collected.verdict(refusals, _qualifiers(program, options))
    return replace(verdict, seconds=time.monotonic() - began), solved, stuck


def _solve(timelines: Timelines, name: str, queue_order: QueueOrder) -> _Solved:
    if name == SEMAPHORES:
        by_semaphores = semaphore_order(timelines, queue_order=queue_order)
        return _Solved(by_semaphores.order, by_semaphores, by_semaphores.assuming)
    assuming = partial(in_queue_order, dependency_graph(timelines))
    return _Solved(assuming(queue_order), None, assuming)


def _in_order(step: _Solved, rows: I64, options: Options) -> Order | None:
    """The same order with queues that complete in order; None when there is nothing that queues could separate."""
    lines = step.order.timelines
    if not len(rows) or not (lines.program.instructions.queue >= 0).any():
        return None
    if options.queue_order is not QueueOrder.IGNORED:
        return step.order
    return step.assuming(QueueOrder.COMPLETION)


class _Collected:
    """Races of all unrollings under one order, one record for each pair of instructions and loop distance."""

    def __init__(self, name: str, options: Options) -> None:
        self.name, self.options = name, options
        self.races: dict[tuple[int, int, int], EngineRace] = {}
        self.possible: dict[tuple[int, int, int], EngineRace] = {}
        self.excused: dict[tuple[int, int, int], EngineRace] = {}
        self.edges: list[MissingEdge] = []
        self.race_count = self.possible_count = 0
        self.unlisted = False

    def add(self, step: _Solved, met: Conflicts) -> None:
        order = step.order
        racing = racing_accesses(order, met, every_pair=not self.options.first_only)
        pairs = self._classified(step, racing, met)
        if self.options.first_only and racing.count and not len(pairs.certain):
            racing = racing_accesses(order, met)
            pairs = self._classified(step, racing, met)
        self.unlisted |= not self.options.first_only and racing.count > len(racing.rows)
        self.race_count = max(self.race_count, len(pairs.certain))
        self.possible_count = max(self.possible_count, len(pairs.possible))
        self._record(order, pairs)
        wanted = np.concatenate([pairs.certain, pairs.possible])
        if self.options.repair and 0 < len(racing.rows) <= LARGEST_REPAIR and len(wanted):
            self.edges = missing_edges(order, _unexcused(racing.rows, pairs, order, self.options))

    def _classified(self, step: _Solved, racing: RacingAccesses, met: Conflicts) -> Pairs:
        pairs = classify(step.order, racing, met, _in_order(step, racing.rows, self.options))
        if self.options.queue_order is not QueueOrder.TRUSTED:
            return pairs
        certain = pairs.certain[~pairs.queue_order_only]
        return replace(pairs, certain=certain, queue_order_only=np.zeros(len(certain), dtype=bool))

    def _record(self, order: Order, pairs: Pairs) -> None:
        by_queue = pairs.queue_order_only.tolist() + [False] * (len(pairs.possible) + len(pairs.excused))
        into = [self.races] * len(pairs.certain) + [self.possible] * len(pairs.possible)
        into += [self.excused] * len(pairs.excused)
        rows = np.concatenate([pairs.certain, pairs.possible, pairs.excused])
        lines = order.timelines
        apart = lines.distance(rows[:, 0], rows[:, 2]).tolist()
        for records, only, (a, x, b, y), distance in zip(into, by_queue, rows.tolist(), apart, strict=True):
            key = (int(lines.instruction[a]), int(lines.instruction[b]), distance)
            if key not in records and len(records) < self.options.limit:
                records[key] = describe(order, Row(a, x, b, y, only), order_name=self.name)

    def verdict(self, refusals: list[Refusal], qualifiers: tuple[str, ...]) -> OrderVerdict:
        possible = _sorted(self.possible)
        refusals = list(refusals)
        if self.unlisted:
            reason = f"more than {LARGEST_LIST} pairs of accesses race or may race; only those were looked at"
            refusals.append(Refusal("too-many-pairs", reason))
        if possible:
            one = possible[0]
            reason = f"{one.first.name!r} and {one.second.name!r} race if addresses known only at run time meet"
            refusals.append(Refusal("runtime-address", reason))
        status = Status.RACES if self.races else Status.UNSUPPORTED if refusals else Status.OK
        return OrderVerdict(
            order=self.name,
            status=status,
            races=_sorted(self.races),
            race_count=max(self.race_count, len(self.races)),
            possible=possible,
            possible_count=max(self.possible_count, len(possible)),
            excused=_sorted(self.excused),
            missing_edges=tuple(self.edges),
            refusals=tuple(refusals),
            qualifiers=qualifiers if status is Status.OK else (),
        )


def _unexcused(rows: I64, pairs: Pairs, order: Order, options: Options) -> I64:
    """The racing rows to repair: all but those of pairs that are excused or trusted to a queue."""
    kept = {(a, b) for a, _, b, _ in np.concatenate([pairs.certain, pairs.possible]).tolist()}
    if len(pairs.excused) or options.queue_order is QueueOrder.TRUSTED or order.timelines.trips:
        instruction = order.timelines.instruction
        some = np.array(sorted(kept), dtype=np.int64).reshape(-1, 2)
        apart = order.timelines.distance(some[:, 0], some[:, 1]).tolist()
        keys = {(int(instruction[a]), int(instruction[b]), d) for (a, b), d in zip(some.tolist(), apart, strict=True)}
        ordered = np.where((rows[:, 0] > rows[:, 2])[:, None], rows[:, [2, 3, 0, 1]], rows)
        first, second = instruction[ordered[:, 0]], instruction[ordered[:, 2]]
        distance = order.timelines.distance(ordered[:, 0], ordered[:, 2])
        chosen = [key in keys for key in zip(first.tolist(), second.tolist(), distance.tolist(), strict=True)]
        rows = rows[np.array(chosen, dtype=bool)]
    return rows


def _sorted(records: dict[tuple[int, int, int], EngineRace]) -> tuple[EngineRace, ...]:
    return tuple(records[key] for key in sorted(records, key=lambda k: (k[2], k[0], k[1])))


def _qualifiers(program: EngineProgram, options: Options) -> tuple[str, ...]:
    if options.queue_order is QueueOrder.IGNORED or not (program.instructions.queue >= 0).any():
        return ()
    return (ONE_AT_A_TIME if options.queue_order is QueueOrder.TRUSTED else IN_ORDER_COMPLETION,)


def _disagreements(program: EngineProgram, solved: Sequence[SemaphoreOrder]) -> Sequence[Disagreement]:
    """Those of all unrollings, each once."""
    found: dict[tuple[str, str, str | None, str | None], Disagreement] = {}
    for order in solved:
        for one in disagreements(program, order):
            found.setdefault((one.kind, one.instruction, one.producer, one.semaphore), one)
    return list(found.values())


def _worst(statuses: Iterable[Status]) -> Status:
    seen = set(statuses)
    for status in (Status.RACES, Status.UNSUPPORTED, Status.VACUOUS):
        if status in seen:
            return status
    return Status.OK
