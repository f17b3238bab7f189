"""The questions of the two-copy method: two executions, of two programs or of one, that share a byte and nothing orders.

A question is a conjunction of conditions. What is private to an execution (program id, lanes, rounds, unknown values) is
renamed per copy, 1 and 2; parameters, the grid and memory nobody writes are shared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeGuard

from racefree.proof.replicas import loads_replicas
from racefree.proof.symbolic.records import Fence, Loop, Obligation, Reading, Record, spans_programs
from racefree.proof.symbolic.replacing import Replacer
from racefree.proof.symbolic.terms import (
    FALSE,
    TRUE,
    Atom,
    Condition,
    Relation,
    Sum,
    Var,
    VarKind,
    add,
    both,
    compare,
    conjunction,
    either,
    negate,
    number,
    variable,
)
from racefree.proof.symbolic.variables import grid_size, program_id

PRIVATE = frozenset((VarKind.LANE, VarKind.ITERATION, VarKind.PROGRAM))


def copied(var: Var, copy: int) -> Var:
    """A variable as one of the two executions has it."""
    return replace(var, name=f"{var.name}@{copy}") if var.kind in PRIVATE else var


def copier(copy: int) -> Replacer:
    """Renames all that is private to an execution."""
    return Replacer(lambda v: variable(copied(v, copy)) if v.kind in PRIVATE else None, unknowns=f"@{copy}")


def own(var: Var, copy: int) -> Sum:
    return variable(copied(var, copy))


def _equal(a: Sum, b: Sum) -> Condition:
    return compare(Relation.EQ, a, b)


def _differ(a: Sum, b: Sum) -> Condition:
    return compare(Relation.NE, a, b)


def _any(conditions: Iterable[Condition]) -> Condition:
    out: Condition = FALSE
    for condition in conditions:
        out = either(out, condition)
    return out


@dataclass(frozen=True, slots=True)
class Domain:
    """What a question is asked about.

    `axes` are the grid axes along which two programs may differ; `pinned` fixes the extent of an axis. `ranges` maps a
    record (by access index) to the half-open byte ranges it may touch: accesses outside their tensors are not considered.
    `threads` per program; with `strict_lanes` nothing is assumed about which of them runs a lane. With `replicas_first`
    all replicas of a load are taken to come before what depends on it.
    """

    axes: tuple[int, ...]
    pinned: dict[int, int]
    ranges: dict[int, tuple[tuple[int, int], ...]]
    threads: int
    strict_lanes: bool
    replicas_first: bool


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
            inside = Question(first, second, True)
            if not (_exclusive(inside) and aligned(first.address, second.address, first.access.element_bytes)):
                yield inside


def _exclusive(question: Question) -> bool:
    """Whether the two are atomic for each other where they meet on exactly the same bytes."""
    both_sides = (question.first, question.second)
    atomic = all(r.access.kind.atomic and (question.same_program or spans_programs(r)) for r in both_sides)
    return atomic and _same_size(*both_sides)


def _same_size(first: Record, second: Record) -> bool:
    return first.access.element_bytes == second.access.element_bytes


def assertions(
    reading: Reading, question: Question, domain: Domain, names: tuple[Replacer, Replacer], *, same: bool | None = None
) -> list[Condition]:
    """What must hold for the question's race to exist, widths assumed not to wrap.

    `names` are the copiers 1 and 2, which remember what they have renamed for other questions about the same reading.
    `same` says that both records are one access, where they have been rewritten.
    """
    first, second = question.first, question.second
    copies = ((first, names[0]), (second, names[1]))
    out = [_overlap(question, *names)]
    out += _programs(question, domain)
    out += [own_names.condition(both(record.path, record.mask)) for record, own_names in copies]
    out += [_within(record, own_names, domain) for record, own_names in copies]
    if question.same_program:
        one = first is second if same is None else same
        out.append(_distinct(first, second, domain, one_access=one))
        out += _unfenced(reading.fences, first, second)
    for record, own_names in copies:
        out += [own_names.condition(fits(o)) for o in sorted(record.obligations, key=hash) if not o.earlier]
    return [c for c in out if c != TRUE]


def fits(obligation: Obligation) -> Condition:
    low = compare(Relation.LE, number(obligation.low), obligation.value)
    high = compare(Relation.LE, obligation.value, number(obligation.high))
    return either(negate(obligation.guard), both(low, high))


def violated(obligation: Obligation) -> Condition:
    low = compare(Relation.LT, obligation.value, number(obligation.low))
    high = compare(Relation.LT, number(obligation.high), obligation.value)
    return copier(1).condition(both(obligation.guard, either(low, high)))


def in_grid(domain: Domain, copy: int) -> list[Condition]:
    """The program id lies in the grid, whose extent is pinned along some axes."""
    return _in_grid(domain.axes, domain.pinned, copy)


def _in_grid(axes: tuple[int, ...], pinned: dict[int, int], copy: int) -> list[Condition]:
    out = []
    for axis in range(3):
        extent = variable(grid_size(axis))
        if axis in axes:
            out.append(compare(Relation.LT, own(program_id(axis), copy), extent))
        elif axis in pinned:
            out.append(_equal(own(program_id(axis), copy), number(0)))
        if axis in pinned:
            out.append(_equal(extent, number(pinned[axis])))
    return out


def _programs(question: Question, domain: Domain) -> tuple[Condition, ...]:
    one_record = question.first is question.second
    return _programs_of(domain.axes, tuple(domain.pinned.items()), question.same_program, one_record)


@lru_cache(maxsize=64)
def _programs_of(
    axes: tuple[int, ...], pinned: tuple[tuple[int, int], ...], same_program: bool, one_record: bool
) -> tuple[Condition, ...]:
    out = [*_in_grid(axes, dict(pinned), 1), *_in_grid(axes, dict(pinned), 2)]
    pairs = [(own(program_id(a), 1), own(program_id(a), 2)) for a in axes]
    if same_program:
        return (*out, *(_equal(a, b) for a, b in pairs))
    if one_record:  # swapping the two executions changes nothing else
        return (*out, _less(pairs))
    return (*out, _any(_differ(a, b) for a, b in pairs))


def _less(pairs: Sequence[tuple[Sum, Sum]]) -> Condition:
    """The left numbers come before the right ones, lexicographically."""
    out: Condition = FALSE
    for a, b in reversed(pairs):
        out = either(compare(Relation.LT, a, b), both(_equal(a, b), out))
    return out


def _within(record: Record, names: Replacer, domain: Domain) -> Condition:
    ranges = domain.ranges.get(record.access.index)
    if ranges is None:
        return TRUE
    address = names.sum(record.address)
    size = record.access.element_bytes
    return _any(
        both(compare(Relation.LE, number(low), address), compare(Relation.LE, address, number(high - size)))
        for low, high in ranges
    )


def _overlap(question: Question, one: Replacer, other: Replacer) -> Condition:
    first, second = question.first, question.second
    a, b = one.sum(first.address), other.sum(second.address)
    exclusive = _exclusive(question)
    if _same_size(first, second) and aligned(first.address, second.address, first.access.element_bytes):
        return FALSE if exclusive else _equal(a, b)
    meet = both(
        compare(Relation.LT, a, add((b, number(second.access.element_bytes)))),
        compare(Relation.LT, b, add((a, number(first.access.element_bytes)))),
    )
    return both(meet, _differ(a, b)) if exclusive else meet


def aligned(a: Sum, b: Sum, size: int) -> bool:
    """The difference of two addresses is always a multiple of `size`, so elements meet entirely or not at all."""
    bases = [sorted((v.name, f) for v, f in t.parts if _is_base(v)) for t in (a, b)]
    rest = [f for t in (a, b) for v, f in t.parts if not _is_base(v)]
    return bases[0] == bases[1] and (a.constant - b.constant) % size == 0 and all(f % size == 0 for f in rest)


def _is_base(atom: Atom) -> TypeGuard[Var]:
    """The address of a tensor: both executions see the same one."""
    return isinstance(atom, Var) and atom.kind is VarKind.BASE


def _distinct(first: Record, second: Record, domain: Domain, *, one_access: bool) -> Condition:
    """Two executions of one program: not the same one, and not ordered lane for lane."""
    lanes = _lanes_differ(first, second)
    same_tile = first.access.shape == second.access.shape
    rounds = [_differ(own(a.iteration, 1), own(b.iteration, 2)) for a, b in common_loops(first, second)]
    one_size = first.access.element_bytes == second.access.element_bytes
    if same_tile and one_size and _one_owner(first, domain):
        return lanes
    scalars = first.access.shape == () == second.access.shape
    if scalars and not domain.strict_lanes and first.access.kind.writes and second.access.kind.writes:
        return FALSE
    if one_access or (same_tile and _dependent(first, second, domain)):
        return _any((lanes, *rounds))
    return TRUE


def ordered_less(question: Question, domain: Domain, weaker: Domain) -> bool:
    """Whether two executions in one program that one domain takes as ordered are not so in the other."""
    first, second = question.first, question.second
    one = first is second
    return _distinct(first, second, domain, one_access=one) != _distinct(first, second, weaker, one_access=one)


def _one_owner(record: Record, domain: Domain) -> bool:
    """One thread owns the lane of a large tile in all its executions."""
    elements = 1
    for extent in record.access.shape:
        elements *= extent
    return not domain.strict_lanes and elements >= domain.threads


def _dependent(first: Record, second: Record, domain: Domain) -> bool:
    """The later of the two depends on what the earlier read, in all threads that read it or by assumption."""
    for before, after in ((first, second), (second, first)):
        if before.access.index in after.depends:
            return domain.replicas_first or not loads_replicas(before.access, after.access, domain.threads)
    return False


def _lanes_differ(first: Record, second: Record) -> Condition:
    return _any(
        _differ(own(a, 1), own(b, 2))
        for a, b in zip(first.lanes, second.lanes, strict=False)
        if a is not None and b is not None
    )


def common_loops(first: Record, second: Record) -> list[tuple[Loop, Loop]]:
    """The loops around both, outermost first."""
    out = []
    for a, b in zip(first.loops, second.loops, strict=False):
        if a.number != b.number:
            break
        out.append((a, b))
    return out


def _unfenced(fences: Sequence[Fence], first: Record, second: Record) -> list[Condition]:
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
        common = [(a, b) for a, b in common_loops(first, second) if a.number in fence.loops]
        rounds = [(own(a.iteration, 1), own(b.iteration, 2)) for a, b in common]
        allowed: list[Condition] = []
        if not (first.order < fence.order < second.order):
            allowed.append(conjunction(_equal(a, b) for a, b in rounds))
        after = (with_first and fence.order > first.order, with_second and fence.order > second.order)
        before = (with_first and fence.order < first.order, with_second and fence.order < second.order)
        steady = len(common) == 1 and fence.place == first.place[: _depth_of(first, common[0][0])]
        if not (after[0] or before[1]):
            allowed.append(_earlier(rounds, adjacent=steady))
        if not (after[1] or before[0]):
            allowed.append(_earlier([(b, a) for a, b in rounds], adjacent=steady))
        out.append(_any(allowed))
    return out


def _depth_of(record: Record, loop: Loop) -> int:
    """How many steps of a record's place lead into the body of one of its loops."""
    return 1 + next(k for k, (place, _) in enumerate(record.place) if place == loop.number)


def _earlier(rounds: Sequence[tuple[Sum, Sum]], *, adjacent: bool) -> Condition:
    """The left rounds come before the right ones, lexicographically.

    `adjacent`: with a whole round in between, the barrier, which every round passes, would part the two.
    """
    cases = []
    for depth, (low, high) in enumerate(rounds):
        equal = conjunction(_equal(a, b) for a, b in rounds[:depth])
        step = _equal(high, add((low, number(1)))) if adjacent else compare(Relation.LT, low, high)
        cases.append(both(equal, step))
    return _any(cases)
