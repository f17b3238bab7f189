"""Records with plain numbers for their variables: every execution a symbolic reading predicts."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from racefree.proof.symbolic.records import Reading, Record
from racefree.proof.symbolic.replacing import leaves
from racefree.proof.symbolic.terms import (
    Apply,
    Atom,
    Both,
    Choose,
    Compare,
    Condition,
    Either,
    FreeTruth,
    Not,
    Read,
    Relation,
    Sum,
    Truth,
    Unknown,
    Var,
    evaluate,
)
from racefree.proof.symbolic.variables import EARLIER

Values = dict[str, int]
MAX_ROUNDS = 40


def integer(term: Sum, values: Values) -> int:
    return term.constant + sum(factor * _atom(atom, values) for atom, factor in term.parts)


def _atom(atom: Atom, values: Values) -> int:
    match atom:
        case Var():
            assert atom.low is None or values[atom.name] >= atom.low
            assert atom.high is None or values[atom.name] <= atom.high
            return values[atom.name]
        case Apply():
            found = evaluate(atom.function, integer(atom.left, values), integer(atom.right, values))
            assert found is not None
            return found
        case Choose():
            return integer(atom.then if holds(atom.condition, values) else atom.other, values)
        case Unknown() | Read():
            raise AssertionError(f"{atom} has no value")


def holds(condition: Condition, values: Values) -> bool:
    match condition:
        case Truth():
            return condition.value
        case Not():
            return not holds(condition.operand, values)
        case Both():
            return holds(condition.left, values) and holds(condition.right, values)
        case Either():
            return holds(condition.left, values) or holds(condition.right, values)
        case Compare():
            a, b = integer(condition.left, values), integer(condition.right, values)
            return {Relation.EQ: a == b, Relation.NE: a != b, Relation.LT: a < b, Relation.LE: a <= b}[
                condition.relation
            ]
        case FreeTruth():
            raise AssertionError(f"{condition} has no value")


def executions(reading: Reading, shared: Values, grid: tuple[int, int, int]) -> set[tuple[object, ...]]:
    """(access, program, rounds, lane, address) for every execution at this grid."""
    values = dict(shared, g0=grid[0], g1=grid[1], g2=grid[2])
    out: set[tuple[object, ...]] = set()
    for pid in itertools.product(*map(range, grid)):
        values.update(p0=pid[0], p1=pid[1], p2=pid[2])
        for record in reading.records:
            for rounds in _rounds(record, values, 0):
                out.update(_lanes(record, values, pid, rounds))
    return out


def _rounds(record: Record, values: Values, depth: int) -> Iterator[tuple[int, ...]]:
    if depth == len(record.loops):
        yield ()
        return
    loop = record.loops[depth]
    high = loop.iteration.high
    for k in range(MAX_ROUNDS if high is None else min(high + 1, MAX_ROUNDS)):
        values[loop.iteration.name] = k
        if not holds(loop.runs, values):
            break
        for rest in _rounds(record, values, depth + 1):
            yield (k, *rest)


def _lanes(
    record: Record, values: Values, pid: tuple[int, ...], rounds: tuple[int, ...]
) -> Iterator[tuple[object, ...]]:
    for lane in itertools.product(*(range(n) for n in record.access.shape)):
        values.update({v.name: k for v, k in zip(record.lanes, lane, strict=True) if v is not None})
        if holds(record.path, values) and holds(record.mask, values):
            for _ in _earlier(record, values):
                for obligation in record.obligations:
                    if holds(obligation.guard, values):
                        assert obligation.low <= integer(obligation.value, values) <= obligation.high
            yield (record.access.index, pid, rounds, lane, integer(record.address, values))


def _earlier(record: Record, values: Values) -> Iterator[None]:
    """Sets what stands for any earlier round of a loop to each round in turn; where it is not earlier, a guard says so."""
    found = leaves(*(term for o in record.obligations for term in (o.value, o.guard)))
    names = {leaf for leaf in found if isinstance(leaf, Var) and leaf.name.startswith(EARLIER)}
    for k in range(MAX_ROUNDS if names else 1):
        values.update({v.name: k if v.high is None else min(k, v.high) for v in names})
        yield
