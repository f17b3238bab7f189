"""What no two executions can both draw: the results of counters only ever counted, and the one success of a swap.

* Atomics that add one odd constant are the only accesses that write at a location. Then its values repeat only after 2**bits
  executions, so any two executions draw different numbers, whatever the counter held before.
* The constant is positive, and the counter begins too low to be counted past the end of its integers. Then nothing drawn is
  lower than where it began, and two numbers are at least the constant apart.
* A compare-and-swap finds a value that nothing leaves at its location, itself included. Then it succeeds at most once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from racefree.access import Kind
from racefree.graph.program import Int
from racefree.proof.symbolic.questions import Domain, aligned, copied, copier, own
from racefree.proof.symbolic.records import Reading, Record, constant, spans_programs
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.terms import (
    TRUE,
    Condition,
    Relation,
    Sum,
    Term,
    Unknown,
    both,
    compare,
    conjunction,
    either,
    negate,
    number,
    subtract,
)
from racefree.proof.symbolic.variables import program_id


@dataclass(frozen=True, slots=True)
class Ticket:
    """The result of an atomic of `bits` bits, by the name of its unknown.

    `won` is the result that at most one execution at a location sees; None: all results there differ, as long as there are
    fewer than 2**bits, also from those of other atomics of the same `series`. Where the `count` is known, they are at least
    `step` apart, and none is lower than where it begins.
    """

    name: str
    won: int | None
    bits: int
    record: Record
    series: int
    step: int = 1
    count: Count | None = None


@dataclass(frozen=True, slots=True)
class Drawn:
    """What a launch draws at one address: `times` numbers, from `start` on."""

    address: int
    start: int
    times: int


@dataclass(frozen=True, slots=True)
class Count:
    """What every location of a series holds before the launch, and how many additions there are at most, where that is known.

    `drawn` tells the same of each location that the launch adds to; None if it is not known of all of them.
    """

    start: int | None
    most: int | None
    drawn: tuple[Drawn, ...] | None = None


Counting = Callable[[Sequence[Record], int], Count | None]
"""What is known of a series of atomics that add one number; None unless it never counts past the end of its integers."""


def tickets(
    reading: Reading, may_meet: set[tuple[int, int]], counting: Counting = lambda *_: None
) -> tuple[Ticket, ...]:
    found = (_ticket(record, reading, may_meet, counting) for record in reading.records)
    return tuple(ticket for ticket in found if ticket is not None)


def _ticket(record: Record, reading: Reading, may_meet: set[tuple[int, int]], counting: Counting) -> Ticket | None:
    access = record.access
    if access.result is None or not spans_programs(record):
        return None
    element, first = access.result.element, constant(record, 0)
    if not isinstance(element, Int) or element.bits < 32 or first is None:
        return None
    others = [r for r in reading.records if r.access.kind.writes and _pair(record, r) in may_meet]
    if not all(spans_programs(r) and _exactly(r, record) for r in others):
        return None
    name = f"v{access.result.index}"
    if all(_adds(r, first) for r in (record, *others)):
        count = counting(others, first) if first > 0 else None
        if count is None and first % 2 == 0:
            return None
        return Ticket(name, None, element.bits, record, min(r.access.index for r in others), first, count)
    scalar = record.mask == TRUE and all(r.access.shape == () for r in (record, *others))
    swaps = scalar and access.kind is Kind.CAS and constant(record, 1) != first
    if swaps and all(_leaves_another(r, first) for r in others):
        return Ticket(name, first, element.bits, record, access.index)
    return None


def _pair(a: Record, b: Record) -> tuple[int, int]:
    low, high = sorted((a.access.index, b.access.index))
    return (low, high)


def _adds(record: Record, step: int) -> bool:
    return record.access.kind is Kind.RMW and record.access.rmw == "add" and constant(record, 0) == step


def _exactly(a: Record, b: Record) -> bool:
    """The two meet on all their bytes or on none."""
    size = a.access.element_bytes
    return size == b.access.element_bytes and aligned(a.address, b.address, size)


def _leaves_another(record: Record, value: int) -> bool:
    """Whether an atomic never leaves `value` where it was not before."""
    if record.access.kind is Kind.CAS:
        old, new = constant(record, 0), constant(record, 1)
        return new is not None and (new != value or old == new)
    left = constant(record, 0)
    if record.access.rmw == "exch":
        return left is not None and left != value
    return record.access.rmw in ("add", "or", "xor") and left == 0


def drawn_in(found: Sequence[Ticket], terms: Iterable[Term]) -> bool:
    """Whether the result of some ticket is in the terms of one execution."""
    names = {ticket.name for ticket in found}
    return any(isinstance(leaf, Unknown) and leaf.name in names for leaf in leaves(*terms))


def distinctness(found: Sequence[Ticket], conditions: Iterable[Condition], domain: Domain) -> list[Condition]:
    """What holds for each two executions of tickets that occur in the conditions, whichever copies they belong to."""
    if not found:
        return []
    drawn: dict[int, list[tuple[Ticket, int, Unknown]]] = defaultdict(list)
    by_name = {ticket.name: ticket for ticket in found}
    for leaf in sorted({leaf for leaf in leaves(*conditions) if isinstance(leaf, Unknown)}, key=hash):
        name, _, copy = leaf.name.partition("@")
        if name in by_name and copy:
            drawn[by_name[name].series].append((by_name[name], int(copy), leaf))
    within = [
        _within(*each, each[0].count) for series in drawn.values() for each in series if each[0].count is not None
    ]
    return [*within, *(_distinct(a, b, domain) for each in drawn.values() for a, b in combinations(each, 2))]


def _within(ticket: Ticket, copy: int, leaf: Unknown, count: Count) -> Condition:
    """The number lies between where its counter begins and where the last addition finds that."""
    number_ = Sum(0, ((leaf, 1),))
    out = TRUE if count.start is None else _from(number_, count.start, count.most, ticket.step)
    for place in count.drawn or ():
        elsewhere = compare(Relation.NE, _address(ticket, copy, leaf), number(place.address))
        out = both(out, either(elsewhere, _from(number_, place.start, place.times, ticket.step)))
    return either(negate(happened(ticket, copy, leaf)), out)


def _from(drawn: Sum, start: int, times: int | None, step: int) -> Condition:
    least = compare(Relation.LE, number(start), drawn)
    return least if times is None else both(least, compare(Relation.LE, drawn, number(start + step * (times - 1))))


def _distinct(a: tuple[Ticket, int, Unknown], b: tuple[Ticket, int, Unknown], domain: Domain) -> Condition:
    """One execution, which has one result, or two, of which not both are the one success (or the same number)."""
    left, right = Sum(0, ((a[2], 1),)), Sum(0, ((b[2], 1),))
    ticket = a[0]
    if ticket.won is not None:
        won = number(ticket.won)
        apart = either(compare(Relation.NE, left, won), compare(Relation.NE, right, won))
    elif ticket.count is not None:
        step = number(ticket.step)
        apart = either(
            compare(Relation.LE, step, subtract(right, left)), compare(Relation.LE, step, subtract(left, right))
        )
    else:
        apart = compare(Relation.NE, left, right)
    elsewhere = compare(Relation.NE, _address(*a), _address(*b))
    two = conjunction((negate(elsewhere), happened(*a), happened(*b)))
    differ = either(negate(two), apart)
    if a[0] is not b[0]:
        return differ
    programs = [(own(program_id(axis), a[1]), own(program_id(axis), b[1])) for axis in domain.axes]
    places = zip(a[2].indices, b[2].indices, strict=True)
    one = conjunction(compare(Relation.EQ, x, y) for x, y in (*programs, *places))
    return either(both(one, compare(Relation.EQ, left, right)), both(negate(one), differ))


def happened(ticket: Ticket, copy: int, leaf: Unknown) -> Condition:
    """The lane was not masked off, over the variables of its copy."""
    return _placed(ticket, copy, leaf).condition(copier(copy).condition(ticket.record.mask))


def _address(ticket: Ticket, copy: int, leaf: Unknown) -> Sum:
    """Where an execution has drawn, over the variables of its copy."""
    return _placed(ticket, copy, leaf).sum(copier(copy).sum(ticket.record.address))


def _placed(ticket: Ticket, copy: int, leaf: Unknown) -> Replacer:
    """Puts the lane and the rounds in which an execution has drawn where those of its record stand."""
    record = ticket.record
    lanes = (lane for lane in record.lanes if lane is not None)
    variables = (*lanes, *(loop.iteration for loop in record.loops))
    return Replacer(dict(zip((copied(v, copy) for v in variables), leaf.indices, strict=True)).get)
