"""Recorded contents of tensors nobody writes: tables of their elements, and what holds for a table as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from racefree.graph.launch import LaunchFacts, Storage
from racefree.graph.program import Int
from racefree.proof.replay.lanes import signed
from racefree.proof.replay.memory import untouched_memory
from racefree.proof.smt.launch import Layout, held_storages
from racefree.proof.symbolic.replacing import leaves
from racefree.proof.symbolic.terms import (
    Condition,
    Read,
    Relation,
    Sum,
    both,
    compare,
    conjunction,
    either,
    negate,
    number,
)

MOST_LISTED = 600
MOST_SUMMED_UP = 1 << 20
MOST_PAIRS = 40


@dataclass(frozen=True, slots=True)
class Table:
    """The elements of one storage as a read of `bytes_` bytes sees them, from virtual address `first` on (signed)."""

    first: int
    bytes_: int
    values: npt.NDArray[np.int64]
    distinct: bool
    rising: bool

    @property
    def last(self) -> int:
        return self.first + self.bytes_ * (len(self.values) - 1)

    @property
    def low(self) -> int:
        return int(self.values.min())

    @property
    def high(self) -> int:
        return int(self.values.max())

    def holds(self, address: Sum) -> Condition:
        low = compare(Relation.LE, number(self.first), address)
        return both(low, compare(Relation.LE, address, number(self.last)))


class Contents:
    """The tables of a launch, by where a read starts from."""

    def __init__(self, facts: LaunchFacts, layout: Layout) -> None:
        self._facts = facts
        self._layout = layout
        self._tables: dict[tuple[int, int, int], Table | None] = {}

    def table(self, read: Read) -> Table | None:
        """The table a read belongs to: that of the storage its base address, the constant part, lies in."""
        near = read.address.constant
        held = {(s.address, s.nbytes): s for s in held_storages(self._facts)}
        for storage in held.values():
            start = self._layout.virtual(storage, storage.address)
            if start <= near < start + max(storage.nbytes, 1):
                phase = (near - start) % read.bytes
                overlapping = sum(_meet(storage, other) for other in held.values()) > 1
                if overlapping or any(factor % read.bytes for _, factor in read.address.parts):
                    return None
                key = (storage.address, read.bytes, phase)
                if key not in self._tables:
                    self._tables[key] = self._read(storage.address, storage.nbytes, phase, read.bytes, start)
                return self._tables[key]
        return None

    def _read(self, address: int, nbytes: int, phase: int, bytes_: int, start: int) -> Table | None:
        count = (nbytes - phase) // bytes_
        if not 0 < count <= MOST_SUMMED_UP:
            return None
        places = address + phase + bytes_ * np.arange(count, dtype=np.int64)
        active = np.ones(count, dtype=np.bool_)
        lanes = untouched_memory(self._facts).read(places, active, bytes_, Int(8 * bytes_))
        if not bool(lanes.known.all()):
            return None
        values = np.asarray(signed(lanes.bits, 8 * bytes_))
        distinct = len(np.unique(values)) == count
        rising = bool((values[1:] >= values[:-1]).all())
        return Table(start + phase, bytes_, values, distinct, rising)

    def lemmas(self, conditions: Sequence[Condition]) -> list[Condition]:
        """What two reads of one table tell about each other: equal where it repeats nothing, in order where it rises."""
        reads = sorted((leaf for leaf in leaves(*conditions) if isinstance(leaf, Read)), key=hash)
        out: list[Condition] = []
        for a, b in combinations(reads, 2):
            table = self.table(a)
            if table is None or table is not self.table(b) or not (table.distinct or table.rising):
                continue
            inside = both(table.holds(a.address), table.holds(b.address))
            out.append(either(negate(inside), _relation(table, a, b)))
        return out[:MOST_PAIRS]


def _meet(a: Storage, b: Storage) -> bool:
    return a.address < b.address + b.nbytes and b.address < a.address + a.nbytes


def _relation(table: Table, a: Read, b: Read) -> Condition:
    left, right = Sum(0, ((a, 1),)), Sum(0, ((b, 1),))
    out: list[Condition] = []
    if table.distinct:
        same = compare(Relation.EQ, a.address, b.address)
        out.append(either(same, compare(Relation.NE, left, right)))
    if table.rising:
        for one, other, low, high in ((a, b, left, right), (b, a, right, left)):
            earlier = compare(Relation.LE, one.address, other.address)
            out.append(either(negate(earlier), compare(Relation.LE, low, high)))
    return conjunction(out)
