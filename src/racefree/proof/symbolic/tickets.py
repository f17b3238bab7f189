"""What no two executions can both draw: the results of counters only ever counted, and the one success of a swap.

* Atomics that add one odd constant are the only accesses that write at a location. Then its values repeat only after 2**bits
  executions, so any two executions draw different numbers, whatever the counter held before.
* A compare-and-swap finds a value that nothing leaves at its location, itself included. Then it succeeds at most once.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
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
    Unknown,
    both,
    compare,
    conjunction,
    either,
    negate,
    number,
)
from racefree.proof.symbolic.variables import program_id


@dataclass(frozen=True, slots=True)
class Ticket:
    """The result of an atomic of `bits` bits, by the name of its unknown.

    `won` is the result that at most one execution at a location sees; None: all results there differ, as long as there are
    fewer than 2**bits, also from those of other atomics of the same `series`.
    """

    name: str
    won: int | None
    bits: int
    record: Record
    series: int


def tickets(reading: Reading, may_meet: set[tuple[int, int]]) -> tuple[Ticket, ...]:
    out = []
    for record in reading.records:
        access = record.access
        if access.result is None or not spans_programs(record) or access.shape != () or record.mask != TRUE:
            continue
        element = access.result.element
        if not isinstance(element, Int) or element.bits < 32:
            continue
        others = [r for r in reading.records if r.access.kind.writes and _pair(record, r) in may_meet]
        if not all(spans_programs(r) and r.access.shape == () and _exactly(r, record) for r in others):
            continue
        name, first = f"v{access.result.index}", constant(record, 0)
        if first is None:
            continue
        if first % 2 and all(_adds(r, first) for r in (record, *others)):
            out.append(Ticket(name, None, element.bits, record, min(r.access.index for r in others)))
        swaps = access.kind is Kind.CAS and constant(record, 1) != first
        if swaps and all(_leaves_another(r, first) for r in others):
            out.append(Ticket(name, first, element.bits, record, access.index))
    return tuple(out)


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
    return [_distinct(a, b, domain) for each in drawn.values() for a, b in combinations(each, 2)]


def _distinct(a: tuple[Ticket, int, Unknown], b: tuple[Ticket, int, Unknown], domain: Domain) -> Condition:
    """One execution, which has one result, or two, of which not both are the one success (or the same number)."""
    left, right = Sum(0, ((a[2], 1),)), Sum(0, ((b[2], 1),))
    elsewhere = compare(Relation.NE, _address(*a), _address(*b))
    ticket = a[0]
    if ticket.won is None:
        apart = compare(Relation.NE, left, right)
    else:
        won = number(ticket.won)
        apart = either(compare(Relation.NE, left, won), compare(Relation.NE, right, won))
    two = either(elsewhere, apart)
    if a[0] is not b[0]:
        return two
    programs = [(own(program_id(axis), a[1]), own(program_id(axis), b[1])) for axis in domain.axes]
    rounds = zip(a[2].indices, b[2].indices, strict=True)
    one = conjunction(compare(Relation.EQ, x, y) for x, y in (*programs, *rounds))
    return either(both(one, compare(Relation.EQ, left, right)), both(negate(one), two))


def _address(ticket: Ticket, copy: int, leaf: Unknown) -> Sum:
    """Where an execution has drawn, over the variables of its copy."""
    loops = zip(ticket.record.loops, leaf.indices, strict=True)
    rounds = {copied(loop.iteration, copy): index for loop, index in loops}
    return Replacer(rounds.get).sum(copier(copy).sum(ticket.record.address))
