"""Order through a counter that every program instance counts once: a later number has acquired from all earlier ones.

Every atomic on the counter is the same acquiring and releasing addition, so they form one release sequence. What an instance
did before its addition (and a barrier) happened before what another, with a later number, does because of its own result (or
after a barrier).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from racefree.proof.memory_model import MemoryModel
from racefree.proof.symbolic.questions import Domain, Question
from racefree.proof.symbolic.records import Fence, Record
from racefree.proof.symbolic.replacing import leaves
from racefree.proof.symbolic.terms import (
    ONE,
    TRUE,
    Condition,
    Relation,
    Sum,
    Unknown,
    compare,
    multiply,
    number,
    scale,
    subtract,
    unknown,
    variable,
)
from racefree.proof.symbolic.tickets import Ticket
from racefree.proof.symbolic.variables import grid_size


@dataclass(frozen=True, slots=True)
class Turn:
    """A ticket every instance draws exactly once. `first` is what the counter held before, or None."""

    ticket: Ticket
    first: int | None

    def drawn(self, copy: int) -> Sum:
        """The number one of the two instances has drawn."""
        half = 1 << (self.ticket.bits - 1)
        return unknown(f"{self.ticket.name}@{copy}", (), -half, half - 1)


def is_turn(ticket: Ticket) -> bool:
    """True for a counter that goes up, by an atomic that every instance does once and that acquires and releases."""
    record = ticket.record
    sem = record.access.sem
    once = record.path == TRUE and not record.loops
    return ticket.won is None and once and ticket.step > 0 and sem is not None and sem.acquires and sem.releases


def in_turn(
    question: Question, turns: Sequence[Turn], fences: Sequence[Fence], domain: Domain, model: MemoryModel
) -> list[Condition]:
    """What the numbers two instances have drawn say about a question: its executions are not in order."""
    if question.same_program:
        return []
    out: list[Condition] = []
    for turn in turns:
        one, two = turn.drawn(1), turn.drawn(2)
        ordered: list[Condition] = []
        for before, after, low, high in (
            (question.first, question.second, one, two),
            (question.second, question.first, two, one),
        ):
            if publishes(before, turn, fences, model) and acquires(after, turn, fences, model):
                ordered.append(compare(Relation.LE, high, low))
        if ordered:
            out += [*ordered, compare(Relation.NE, one, two)]
            out += [c for drawn in (one, two) for c in _range(turn, drawn, domain)]
    return out


def _range(turn: Turn, drawn: Sum, domain: Domain) -> list[Condition]:
    if turn.first is None:
        return []
    programs = ONE
    for axis in range(3):
        pinned = domain.pinned.get(axis)
        programs = multiply(programs, variable(grid_size(axis)) if pinned is None else number(pinned))
    count = subtract(drawn, number(turn.first))
    last = scale(subtract(programs, ONE), turn.ticket.step)
    return [compare(Relation.LE, number(0), count), compare(Relation.LE, count, last)]


def publishes(record: Record, turn: Turn, fences: Sequence[Fence], model: MemoryModel) -> bool:
    """Whether an execution of `record` happens before its instance's own release on the counter."""
    release = turn.ticket.record
    if record.order >= release.order:
        return False
    if model.barrier_before_release or (record.access.shape == () and record.access.kind.writes):
        return True
    return any(
        record.order < fence.order < release.order and record.place[: len(fence.place)] == fence.place
        for fence in fences
    )


def acquires(record: Record, turn: Turn, fences: Sequence[Fence], model: MemoryModel) -> bool:
    """Whether an execution of `record` comes after its instance's own acquire on the counter, for all lanes."""
    acquire = turn.ticket.record
    if record.order <= acquire.order:
        return False
    hangs = any(
        isinstance(leaf, Unknown) and leaf.name == turn.ticket.name
        for leaf in leaves(record.path, record.mask, record.address)
    )
    return (
        hangs
        or model.barrier_after_acquire
        or any(
            acquire.order < fence.order < record.order and record.place[: len(fence.place)] == fence.place
            for fence in fences
        )
    )
