"""Recorded contents of tensors nobody writes: tables of their elements, and what holds for a table as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import gcd

import numpy as np
import numpy.typing as npt

from racefree.graph.launch import LaunchFacts, Storage
from racefree.graph.program import Int
from racefree.proof.replay.lanes import signed
from racefree.proof.replay.memory import untouched_memory
from racefree.proof.smt.launch import Layout, held_storages
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.replacing import Replacer, guarded_reads, leaves
from racefree.proof.symbolic.terms import (
    FALSE,
    Condition,
    Read,
    Relation,
    Sum,
    Var,
    both,
    compare,
    conjunction,
    either,
    negate,
    number,
    scale,
    subtract,
)

MOST_LISTED = 600
MOST_SUMMED_UP = 1 << 20
MOST_PAIRS = 40
MOST_RUNS = 40
MOST_TOLD = 200


@dataclass(frozen=True, slots=True)
class Table:
    """What reads of `bytes_` bytes may see in one storage: `values[k]` (signed) at virtual address `first + k * stride`."""

    first: int
    stride: int
    bytes_: int
    values: npt.NDArray[np.int64]
    distinct: bool
    rising: bool
    runs: tuple[Run, ...] | None

    @property
    def last(self) -> int:
        return self.first + self.stride * (len(self.values) - 1)

    @property
    def low(self) -> int:
        return int(self.values.min())

    @property
    def high(self) -> int:
        return int(self.values.max())

    def holds(self, address: Sum) -> Condition:
        return _between(self.first, address, self.last)

    def says(self, read: Read) -> Condition:
        """What holds for a read that happens: it lies in the table, and yields what is there, as far as that is short."""
        value, address = Sum(0, ((read, 1),)), read.address
        if self.runs is None:
            return self.holds(address)
        out: Condition = FALSE
        for run in self.runs:
            first, last = (self.first + self.stride * k for k in (run.first, run.last))
            passed = subtract(address, number(first))
            there = compare(
                Relation.EQ, scale(subtract(value, number(run.value)), self.stride), scale(passed, run.step)
            )
            out = either(out, both(_between(first, address, last), there))
        return out


@dataclass(frozen=True, slots=True)
class Run:
    """Elements `first` to `last` of a table count up from `value` by `step`."""

    first: int
    last: int
    value: int
    step: int


def runs_of(values: npt.NDArray[np.int64]) -> tuple[Run, ...] | None:
    """A table as arithmetic progressions one after the other; None when they would be many, or steps exceed 64 bits."""
    if int(values.max()) - int(values.min()) >= 1 << 63:
        return None
    steps = np.diff(values)
    changes = np.flatnonzero(np.diff(steps)) + 1
    out: list[Run] = []
    first = 0
    while first < len(values):
        if len(out) == MOST_RUNS:
            return None
        later = changes[np.searchsorted(changes, first, side="right") :]
        last = min(int(later[0]) if len(later) else len(steps), len(values) - 1)
        step = int(steps[first]) if last > first else 0
        out.append(Run(first, last, int(values[first]), step))
        first = last + 1
    return tuple(out)


class Contents:
    """The tables of a launch, by where a read starts from."""

    def __init__(self, facts: LaunchFacts, layout: Layout) -> None:
        self._facts = facts
        self._layout = layout
        self._tables: dict[tuple[int, int, int, int], Table | None] = {}

    def table(self, read: Read) -> Table | None:
        """The table a read belongs to: that of the storage its base address, the constant part, lies in."""
        near = read.address.constant
        held = {(s.address, s.nbytes): s for s in held_storages(self._facts)}
        for storage in held.values():
            start = self._layout.virtual(storage, storage.address)
            if start <= near < start + max(storage.nbytes, 1):
                stride = gcd(*(factor for _, factor in read.address.parts)) or read.bytes
                phase = (near - start) % stride
                overlapping = sum(_meet(storage, other) for other in held.values()) > 1
                if overlapping or stride % read.bytes:
                    return None
                key = (storage.address, read.bytes, stride, phase)
                if key not in self._tables:
                    self._tables[key] = self._read(storage, phase, stride, read.bytes, start)
                return self._tables[key]
        return None

    def _read(self, storage: Storage, phase: int, stride: int, bytes_: int, start: int) -> Table | None:
        count = (storage.nbytes - phase - bytes_) // stride + 1
        if not 0 < count <= MOST_SUMMED_UP:
            return None
        places = storage.address + phase + stride * np.arange(count, dtype=np.int64)
        active = np.ones(count, dtype=np.bool_)
        lanes = untouched_memory(self._facts).read(places, active, bytes_, Int(8 * bytes_))
        if not bool(lanes.known.all()):
            return None
        values = np.asarray(signed(lanes.bits, 8 * bytes_))
        distinct = len(np.unique(values)) == count
        rising = bool((values[1:] >= values[:-1]).all())
        return Table(start + phase, stride, bytes_, values, distinct, rising, runs_of(values))

    def narrowed(self, conditions: Sequence[Condition]) -> list[Condition]:
        """The conditions with each read within the bounds of its table, and with what these bounds decide folded."""
        replacer = self.replacer(lambda _: None)
        return [replacer.condition(c) for c in conditions]

    def replacer(self, variables: Callable[[Var], Sum | None]) -> Replacer:
        """Replaces variables, narrows reads, and folds."""
        return Replacer(variables, reads=self._narrow, bounder=Bounder())

    def _narrow(self, read: Read) -> Sum | None:
        table = self.table(read)
        if table is None:
            return None
        return Sum(0, ((replace(read, low=table.low, high=table.high), 1),))

    def premises(self, conditions: Sequence[Condition]) -> tuple[list[Condition], bool]:
        """What the tables say about the reads of some conditions, wherever these happen; and whether that is all they say.

        A tile that is sorted makes each of its elements a choice between all: of so many reads not all is said.
        """
        out: dict[Condition, None] = {}
        complete = True
        for read, guard in guarded_reads(conditions):
            if len(out) == MOST_TOLD:
                return [*out], False
            table = self.table(read)
            if table is not None:
                out[either(negate(guard), table.says(read))] = None
                complete = complete and table.runs is not None
        return [*out, *([] if complete else self.lemmas(conditions))], complete

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


def _between(low: int, address: Sum, high: int) -> Condition:
    return both(compare(Relation.LE, number(low), address), compare(Relation.LE, address, number(high)))


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
