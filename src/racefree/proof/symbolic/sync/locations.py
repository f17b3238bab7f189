"""Which accesses may change what an atomic finds in its location."""

from __future__ import annotations

from racefree.access import Kind
from racefree.graph.program import Int
from racefree.proof.symbolic.questions import aligned, copier, in_grid
from racefree.proof.symbolic.records import Record, spans_programs
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import ZERO, Condition, Relation, Sum, add, both, compare, number

HERE, THERE = 8, 9
"""The copies that stand for the atomic and for an access that may meet it."""


def communicates(record: Record) -> bool:
    """An atomic on one integer, done once per program instance, that all programs see as one."""
    access = record.access
    return spans_programs(record) and access.shape == () and isinstance(access.operands[0].element, Int)


def releases(record: Record) -> bool:
    return communicates(record) and record.access.sem is not None and record.access.sem.releases


def acquires(record: Record) -> bool:
    return communicates(record) and record.access.sem is not None and record.access.sem.acquires


def changes_nothing(record: Record) -> bool:
    """An atomic that leaves the value it found: adding 0, or swapping a value for itself."""
    access, written = record.access, record.written
    if access.kind is Kind.CAS:
        return isinstance(written[0], Sum) and written[0] == written[1]
    return access.kind is Kind.RMW and access.rmw in ("add", "or", "xor") and written[0] == ZERO


def may_change(atomic: Record, setting: Setting) -> tuple[Record, ...]:
    """The accesses of any kind that may change a byte of the location."""
    out = []
    for record in setting.reading.records:
        low, high = sorted((record.access.index, atomic.access.index))
        if not record.access.kind.writes or (low, high) not in setting.may_meet:
            continue
        if communicates(record) and same_bytes(record, atomic) and changes_nothing(record):
            continue
        if record is atomic or not setting.never(_meet(atomic, record, setting)):
            out.append(record)
    return tuple(out)


def writers(atomic: Record, setting: Setting) -> tuple[Record, ...] | None:
    """The accesses that may change the location; all are read-modify-writes every program sees as one, else None.

    Where they are, a release followed by any of them is still acquired from: they continue its release sequence.
    """
    found = may_change(atomic, setting)
    return found if all(communicates(record) and same_bytes(record, atomic) for record in found) else None


def same_bytes(record: Record, atomic: Record) -> bool:
    """Whether two accesses that meet do so on all their bytes."""
    size = atomic.access.element_bytes
    return record.access.element_bytes == size and aligned(record.address, atomic.address, size)


def _meet(atomic: Record, record: Record, setting: Setting) -> list[Condition]:
    here, there = copier(HERE), copier(THERE)
    a, b = here.sum(atomic.address), there.sum(record.address)
    return [
        compare(Relation.LT, a, add((b, number(record.access.element_bytes)))),
        compare(Relation.LT, b, add((a, number(atomic.access.element_bytes)))),
        *in_grid(setting.domain, HERE),
        *in_grid(setting.domain, THERE),
        here.condition(both(atomic.path, atomic.mask)),
        there.condition(both(record.path, record.mask)),
    ]
