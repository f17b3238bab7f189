"""What no two executions can both draw: the results of a counter only ever counted, and the one success of a swap.

* An atomic that adds one odd constant to one address is the only access that writes there. Then its results repeat only after
  2**bits executions, so any two executions draw different numbers, whatever the counter held before.
* A compare-and-swap of one value for another is the only access that writes there. Then it succeeds at most once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from racefree.access import Kind
from racefree.graph.program import Int
from racefree.proof.symbolic.questions import Question
from racefree.proof.symbolic.records import Reading, Record
from racefree.proof.symbolic.replacing import leaves
from racefree.proof.symbolic.terms import (
    FALSE,
    TRUE,
    Condition,
    Relation,
    Sum,
    Unknown,
    Var,
    VarKind,
    both,
    compare,
    either,
    number,
)


@dataclass(frozen=True, slots=True)
class Ticket:
    """The result of an atomic of `bits` bits, by the name of its unknown. `won` is the result that at most one execution sees;
    None: all results differ, as long as there are fewer than 2**bits."""

    name: str
    won: int | None
    bits: int
    record: Record
    step: int = 0


def tickets(reading: Reading, may_meet: set[tuple[int, int]]) -> list[Ticket]:
    out = []
    for record in reading.records:
        access = record.access
        alone = not any(
            other is not record and other.access.kind.writes and _pair(record, other) in may_meet
            for other in reading.records
        )
        plain = access.kind.atomic and access.shape == () and record.mask == TRUE
        if access.result is None or not plain or not alone or not _one_place(record) or not _broad(record):
            continue
        name = f"v{access.result.index}"
        element = access.result.element
        assert isinstance(element, Int)
        constants = [t.constant if isinstance(t, Sum) and not t.parts else None for t in record.written]
        if access.kind is Kind.RMW and access.rmw == "add" and constants[0] is not None and constants[0] % 2:
            out.append(Ticket(name, None, element.bits, record, constants[0]))
        if access.kind is Kind.CAS and None not in constants and constants[0] != constants[1]:
            out.append(Ticket(name, constants[0], element.bits, record))
    return out


def _pair(a: Record, b: Record) -> tuple[int, int]:
    low, high = sorted((a.access.index, b.access.index))
    return (low, high)


def _one_place(record: Record) -> bool:
    """One and the same address in every execution, of at least 32 bits."""
    shared = (VarKind.PARAMETER, VarKind.BASE, VarKind.GRID)
    fixed = all(isinstance(leaf, Var) and leaf.kind in shared for leaf in leaves(record.address))
    element = record.access.operands[0].element
    return fixed and isinstance(element, Int) and element.bits >= 32


def _broad(record: Record) -> bool:
    return record.access.scope is not None and record.access.scope.spans_programs


def distinctness(question: Question, found: Sequence[Ticket], conditions: Iterable[Condition]) -> list[Condition]:
    """For each ticket that occurs in both copies of a question: two executions do not draw the same."""
    unknowns = {leaf for leaf in leaves(*conditions) if isinstance(leaf, Unknown)}
    out = []
    for ticket in found:
        ones = sorted((u for u in unknowns if u.name == f"{ticket.name}@1"), key=hash)
        others = sorted((u for u in unknowns if u.name == f"{ticket.name}@2"), key=hash)
        for a in ones:
            for b in others:
                same = FALSE if not question.same_program else _same_rounds(a, b)
                out.append(either(same, _apart(ticket, a, b)))
    return [c for c in out if c != TRUE]


def _same_rounds(a: Unknown, b: Unknown) -> Condition:
    """Both stand for one execution of the atomic: one program, in the same rounds of the loops around it."""
    same: Condition = TRUE
    for one, other in zip(a.indices, b.indices, strict=True):
        same = both(same, compare(Relation.EQ, one, other))
    return same


def _apart(ticket: Ticket, a: Unknown, b: Unknown) -> Condition:
    left, right = Sum(0, ((a, 1),)), Sum(0, ((b, 1),))
    if ticket.won is None:
        return compare(Relation.NE, left, right)
    won = number(ticket.won)
    return either(compare(Relation.NE, left, won), compare(Relation.NE, right, won))
