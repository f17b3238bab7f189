"""The questions of the two-copy method: two executions, of two programs or of one, that share a byte and nothing orders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import z3

from racefree.proof.smt.encoding import Encoding
from racefree.proof.symbolic.lowering import grid_size, program_id
from racefree.proof.symbolic.records import Fence, Loop, Obligation, Reading, Record
from racefree.proof.symbolic.terms import Sum, both


@dataclass(frozen=True, slots=True)
class Domain:
    """What a question is asked about.

    `axes` are the grid axes along which two programs may differ; `pinned` fixes the extent of an axis. `ranges` maps a
    record (by access index) to the half-open byte ranges it may touch: accesses outside their tensors are not considered.
    `threads` per program, or None to drop the rule that one thread owns a lane.
    """

    axes: tuple[int, ...]
    pinned: dict[int, int]
    ranges: dict[int, tuple[tuple[int, int], ...]]
    threads: int | None


@dataclass(frozen=True, slots=True)
class Question:
    """Two records, asked about two programs or about one."""

    first: Record
    second: Record
    same_program: bool


def questions(reading: Reading, may_meet: set[tuple[int, int]]) -> Iterator[Question]:
    """Every pair of records that could race; `may_meet` holds the pairs of access indices that share a tensor."""
    records = reading.records
    for n, first in enumerate(records):
        for second in records[n:]:
            pair = (first.access.index, second.access.index)
            if pair not in may_meet or not (first.access.kind.writes or second.access.kind.writes):
                continue
            yield Question(first, second, False)
            if not (first.access.kind.atomic and second.access.kind.atomic and _same_size(first, second)):
                yield Question(first, second, True)


def _broad(record: Record) -> bool:
    access = record.access
    return access.kind.atomic and access.scope is not None and access.scope.spans_programs


def _same_size(first: Record, second: Record) -> bool:
    return first.access.element_bytes == second.access.element_bytes


def assertions(
    encoding: Encoding, reading: Reading, question: Question, domain: Domain, *, same: bool | None = None
) -> list[Any]:
    """What must hold for the question's race to exist, widths assumed not to wrap.

    `same` says that both records are one access, where they have been rewritten.
    """
    first, second = question.first, question.second
    out = [_active(encoding, first, 1), _active(encoding, second, 2)]
    out += _programs(encoding, question, domain)
    out += [_within(encoding, r, copy, domain) for r, copy in ((first, 1), (second, 2))]
    out += [fits(encoding, o, copy) for r, copy in ((first, 1), (second, 2)) for o in _sorted(r.obligations)]
    out.append(_overlap(encoding, first, second))
    if question.same_program:
        out.append(_distinct(encoding, first, second, domain, first is second if same is None else same))
        out += _unfenced(encoding, reading.fences, first, second)
    return out


def _sorted(obligations: frozenset[Obligation]) -> list[Obligation]:
    return sorted(obligations, key=hash)


def _active(encoding: Encoding, record: Record, copy: int) -> Any:
    return encoding.condition(both(record.path, record.mask), copy)


def fits(encoding: Encoding, obligation: Obligation, copy: int) -> Any:
    value = encoding.sum(obligation.value, copy)
    holds = z3.And(value >= obligation.low, value <= obligation.high)
    return z3.Or(z3.Not(encoding.condition(obligation.guard, copy)), holds)


def violated(encoding: Encoding, obligation: Obligation, copy: int) -> Any:
    value = encoding.sum(obligation.value, copy)
    fails = z3.Or(value < obligation.low, value > obligation.high)
    return z3.And(encoding.condition(obligation.guard, copy), fails)


def in_grid(encoding: Encoding, domain: Domain, copy: int) -> list[Any]:
    """The program id lies in the grid, whose extent is pinned along some axes."""
    out = []
    for axis in range(3):
        if axis in domain.axes:
            extent = encoding.variable(grid_size(axis), copy)
            out.append(encoding.variable(program_id(axis), copy) < extent)
            if axis in domain.pinned:
                out.append(extent == domain.pinned[axis])
        elif axis in domain.pinned:
            out.append(encoding.variable(grid_size(axis), copy) == domain.pinned[axis])
            out.append(encoding.variable(program_id(axis), copy) == 0)
    return out


def _programs(encoding: Encoding, question: Question, domain: Domain) -> list[Any]:
    out = in_grid(encoding, domain, 1) + in_grid(encoding, domain, 2)
    pairs = [(encoding.variable(program_id(a), 1), encoding.variable(program_id(a), 2)) for a in domain.axes]
    if question.same_program:
        return out + [a == b for a, b in pairs]
    if not pairs:
        return [*out, z3.BoolVal(False, encoding.context)]
    return [*out, z3.Or([a != b for a, b in pairs])]


def _within(encoding: Encoding, record: Record, copy: int, domain: Domain) -> Any:
    ranges = domain.ranges.get(record.access.index)
    if ranges is None:
        return z3.BoolVal(True, encoding.context)
    address = encoding.sum(record.address, copy)
    size = record.access.element_bytes
    each = [z3.And(address >= low, address <= high - size) for low, high in ranges]
    return z3.Or(each) if len(each) > 1 else each[0]


def _overlap(encoding: Encoding, first: Record, second: Record) -> Any:
    a, b = encoding.sum(first.address, 1), encoding.sum(second.address, 2)
    if _same_size(first, second) and _aligned(first.address, second.address, first.access.element_bytes):
        if _broad(first) and _broad(second):
            return z3.BoolVal(False, encoding.context)
        return a == b
    meet = z3.And(a < b + second.access.element_bytes, b < a + first.access.element_bytes)
    if _broad(first) and _broad(second) and _same_size(first, second):
        return z3.And(meet, a != b)
    return meet


def _aligned(a: Sum, b: Sum, size: int) -> bool:
    """The difference of two addresses is always a multiple of `size`, so elements meet entirely or not at all."""
    factors = [f for t in (a, b) for _, f in t.parts]
    return (a.constant - b.constant) % size == 0 and all(f % size == 0 for f in factors)


def _distinct(encoding: Encoding, first: Record, second: Record, domain: Domain, same: bool) -> Any:
    """Two executions of one program: not the same one, and not ordered lane for lane."""
    lanes = _lanes_differ(encoding, first, second)
    same_tile = first.access.shape == second.access.shape
    common = _common(first, second)
    if same_tile and _one_owner(first, domain):
        return lanes
    scalars = first.access.shape == () == second.access.shape
    if scalars and first.access.kind.writes and second.access.kind.writes:
        return z3.BoolVal(False, encoding.context)
    if same:
        return z3.Or([lanes, *_rounds_differ(encoding, common)])
    depends = first.access.index in second.depends or second.access.index in first.depends
    if depends and same_tile:
        return z3.Or([lanes, *_rounds_differ(encoding, common)])
    return z3.BoolVal(True, encoding.context)


def _one_owner(record: Record, domain: Domain) -> bool:
    """One thread owns the lane of a large tile in all its executions; a scalar is written by one thread, in order."""
    elements = 1
    for extent in record.access.shape:
        elements *= extent
    return domain.threads is not None and elements >= domain.threads


def _lanes_differ(encoding: Encoding, first: Record, second: Record) -> Any:
    differ = [
        encoding.variable(a, 1) != encoding.variable(b, 2)
        for a, b in zip(first.lanes, second.lanes, strict=False)
        if a is not None and b is not None
    ]
    return z3.Or(differ) if differ else z3.BoolVal(False, encoding.context)


def _rounds_differ(encoding: Encoding, common: Sequence[tuple[Loop, Loop]]) -> list[Any]:
    return [encoding.variable(a.iteration, 1) != encoding.variable(b.iteration, 2) for a, b in common]


def _common(first: Record, second: Record) -> list[tuple[Loop, Loop]]:
    """The loops around both, outermost first."""
    out = []
    for a, b in zip(first.loops, second.loops, strict=False):
        if a.number != b.number:
            break
        out.append((a, b))
    return out


def _unfenced(encoding: Encoding, fences: Sequence[Fence], first: Record, second: Record) -> list[Any]:
    """No barrier lies between the two executions.

    A barrier runs whenever an access does whose place it encloses: before it or after it, in the same rounds. It parts
    executions of different rounds too where it stands after the earlier or before the later one.
    """
    out = []
    for fence in fences:
        depth = len(fence.place)
        with_first = first.place[:depth] == fence.place
        with_second = second.place[:depth] == fence.place
        if not (with_first or with_second):
            continue
        common = [(a, b) for a, b in _common(first, second) if a.number in fence.loops]
        allowed = []
        if not (first.order < fence.order < second.order):
            allowed.append(z3.And([z3.BoolVal(True, encoding.context), *_rounds_equal(encoding, common)]))
        after = (with_first and fence.order > first.order, with_second and fence.order > second.order)
        before = (with_first and fence.order < first.order, with_second and fence.order < second.order)
        steady = len(common) == 1 and fence.place == first.place[: _depth_of(first, common[0][0])]
        if common and not (after[0] or before[1]):
            allowed.append(_earlier(encoding, common, 1, 2, adjacent=steady))
        if common and not (after[1] or before[0]):
            allowed.append(_earlier(encoding, common, 2, 1, adjacent=steady))
        out.append(z3.Or(allowed) if allowed else z3.BoolVal(False, encoding.context))
    return out


def _depth_of(record: Record, loop: Loop) -> int:
    """How many steps of a record's place lead into the body of one of its loops."""
    return 1 + next(k for k, (number, _) in enumerate(record.place) if number == loop.number)


def _rounds_equal(encoding: Encoding, common: Sequence[tuple[Loop, Loop]]) -> list[Any]:
    return [encoding.variable(a.iteration, 1) == encoding.variable(b.iteration, 2) for a, b in common]


def _earlier(encoding: Encoding, common: Sequence[tuple[Loop, Loop]], one: int, other: int, *, adjacent: bool) -> Any:
    """The rounds of copy `one` come before those of copy `other`, lexicographically.

    `adjacent`: with a whole round in between the barrier, which every round passes, would part them.
    """
    cases = []
    for depth in range(len(common)):
        equal = [
            encoding.variable(common[k][one - 1].iteration, one)
            == encoding.variable(common[k][other - 1].iteration, other)
            for k in range(depth)
        ]
        low = encoding.variable(common[depth][one - 1].iteration, one)
        high = encoding.variable(common[depth][other - 1].iteration, other)
        cases.append(z3.And([*equal, high == low + 1 if adjacent else low < high]))
    return z3.Or(cases)
