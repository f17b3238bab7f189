"""Which atomics an execution has waited for: their results are in its path, mask, address or stored value."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from racefree.proof.symbolic.records import Reading, Record
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.sync.locations import communicates
from racefree.proof.symbolic.terms import (
    ONE,
    TRUE,
    Condition,
    Relation,
    Sum,
    Term,
    Unknown,
    both,
    compare,
    subtract,
    variable,
)


@dataclass(frozen=True, slots=True)
class Observation:
    """One execution of `atomic` in the program of the observer, as terms over the observer's variables.

    `value` is what it found, `executed` tells that it happened, `rounds` in which rounds of the loops around it.
    """

    atomic: Record
    value: Sum
    address: Sum
    executed: Condition
    rounds: tuple[Sum, ...]


def observations(record: Record, reading: Reading) -> tuple[Observation, ...]:
    """The atomics `record` depends on, in program order."""
    written = (w for w in record.written if w is not None)
    seen = observed((record.path, record.mask, record.address, *written), reading)
    return tuple(each for each in seen if each.atomic is not record)


def observed(terms: Iterable[Term], reading: Reading) -> tuple[Observation, ...]:
    """The atomics whose results are in some terms, in program order."""
    by_name = {f"v{r.access.result.index}": r for r in reading.records if r.access.result is not None}
    out = []
    for leaf in leaves(*terms):
        atomic = by_name.get(leaf.name) if isinstance(leaf, Unknown) else None
        if atomic is None or not isinstance(leaf, Unknown) or not communicates(atomic):
            continue
        if len(leaf.indices) == len(atomic.loops):
            out.append(_observation(atomic, leaf, reading))
    return tuple(sorted(out, key=lambda o: (o.atomic.order, hash(o.value))))


def _observation(atomic: Record, leaf: Unknown, reading: Reading) -> Observation:
    place = Replacer({loop.iteration: index for loop, index in zip(atomic.loops, leaf.indices, strict=True)}.get)
    executed = place.condition(both(atomic.path, atomic.mask))
    for waiting in reading.awaits:
        if not atomic.loops or atomic.loops[-1].number != waiting.number or atomic.mask != TRUE:
            continue
        last = variable(waiting.exit)
        if atomic.place == (*waiting.place, (waiting.number, 0)) and leaf.indices[-1] == last:
            executed = place.condition(waiting.path)  # a loop that has ended has done its last look
        elif atomic.place == (*waiting.place, (waiting.number, 1)) and leaf.indices[-1] == subtract(last, ONE):
            executed = both(place.condition(waiting.path), compare(Relation.LE, ONE, last))  # and gone round before
    return Observation(atomic, Sum(0, ((leaf, 1),)), place.sum(atomic.address), executed, leaf.indices)
