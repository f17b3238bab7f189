"""What one program instance knows of a value: its integers, the reads it depends on, and the clock it carries."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any

from racefree.graph.program import Data, Op, Value
from racefree.proof.replay.arithmetic import elementwise
from racefree.proof.replay.folds import folded
from racefree.proof.replay.lanes import Lanes, unknown
from racefree.proof.replay.tiles import advanced, moved

Clock = tuple[int, ...]
"""Per program instance: how many of its releases are known to have happened before."""

Reads = frozenset[int]
NONE: Reads = frozenset()
OLDER = -1
"""Stands for any read of an earlier round of a data-dependent loop."""


def join(a: Clock, b: Clock) -> Clock:
    """The least clock at or above both."""
    return a if a == b else tuple(map(max, a, b))


@dataclass(frozen=True, slots=True, eq=False)
class Val:
    """One value. `lanes` is None when its integers decide nothing (only what it depends on is kept).

    Element i depends for sure on lane i of the reads in `lane` and on the scalar reads in `every`, and perhaps on any lane
    of those in `maybe`. `acquired` is what the scalar acquires it depends on have made visible.
    """

    lanes: Lanes | None
    lane: Reads
    every: Reads
    maybe: Reads
    acquired: Clock
    _key: list[Any] = field(default_factory=list)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for values no continuation can tell apart."""
        if not self._key:
            self._key.append((_digest(self.lanes), self.lane, self.every, self.maybe, self.acquired))
        return self._key[0]  # type: ignore[no-any-return]

    def scalar(self) -> int | None:
        return None if self.lanes is None else self.lanes.scalar()

    def without(self, first: int) -> Val:
        """The value after a round of a data-dependent loop whose reads are numbered from `first`."""

        def old(reads: Reads) -> bool:
            return any(r >= first for r in reads)

        if not (old(self.lane) or old(self.every) or old(self.maybe)):
            return self
        keep = [frozenset(r for r in reads if r < first) for reads in (self.lane, self.every, self.maybe)]
        return Val(self.lanes, keep[0], keep[1], keep[2] | {OLDER}, self.acquired)

    @property
    def all_reads(self) -> Reads:
        return self.lane | self.every | self.maybe


def _digest(lanes: Lanes | None) -> object:
    if lanes is None:
        return None
    if lanes.bits.size == 1:
        return lanes.scalar(), lanes.shape
    text = blake2b(lanes.bits.tobytes(), digest_size=16)
    text.update(lanes.known.tobytes())
    return text.digest(), lanes.shape


def gather(values: Iterable[Val], zero: Clock) -> tuple[Reads, Reads, Reads, Clock]:
    """Lane for lane union of what same-shaped values depend on."""
    lane, every, maybe, acquired = NONE, NONE, NONE, zero
    for value in values:
        lane, every, maybe = lane | value.lane, every | value.every, maybe | value.maybe
        acquired = join(acquired, value.acquired)
    return lane, every, maybe, acquired


def compute(op: Op, operands: Sequence[Val], relevant: frozenset[int], zero: Clock) -> list[Val]:
    """The results of a pure operation."""
    lanes = _lanes(op, operands, relevant)
    shape = op.results[0].shape if op.results else ()
    if all(v.shape == shape for v in op.operands) and not _reorders(op):
        lane, every, maybe, acquired = gather(operands, zero)
    elif all(v.shape == () for v in op.operands):
        lane, every, maybe, acquired = gather(operands, zero)
        lane, every = NONE, every | lane
    elif len(operands) == 1 and not _reorders(op):
        lane, every, maybe, acquired = gather(operands, zero)
        lane, maybe = NONE, maybe | lane
    else:
        lane, every, maybe, acquired = NONE, NONE, frozenset().union(*(o.all_reads for o in operands)), zero
    return [Val(x, lane, every, maybe, acquired) for x in lanes]


def _reorders(op: Op) -> bool:
    return op.name not in _IN_PLACE and not op.name.startswith(("arith.", "math.", "tt.addptr", "tt.bitcast", "tt.fp"))


_IN_PLACE = frozenset(
    (
        "tt.splat",
        "tt.broadcast",
        "tt.expand_dims",
        "tt.unsplat",
        "tt.reshape",
        "tt.trans",
        "tt.ptr_to_int",
        "tt.int_to_ptr",
    )
)


def _lanes(op: Op, operands: Sequence[Val], relevant: frozenset[int]) -> list[Lanes | None]:
    if not any(r.index in relevant for r in op.results):
        return [None] * len(op.results)
    known = [_known(o, v) for o, v in zip(operands, op.operands, strict=True)]
    if op.name == "tt.addptr":
        return [advanced(op, known)]
    single = elementwise(op, known) if known else None
    several = [single] if single is not None else moved(op, known)
    if several is None and known:
        several = folded(op, known, lambda _: None)
    return list(several) if several is not None else [unknown(r.shape) for r in op.results]


def _known(operand: Val, value: Value) -> Lanes:
    return operand.lanes if operand.lanes is not None else unknown(value.shape)


def opaque(data: Data, operands: Sequence[Val], relevant: frozenset[int], zero: Clock) -> list[Val]:
    """The results of an operation whose values are not modelled: unknown integers, but known dependence if lanewise."""
    shapes = {r.shape for r in data.results}
    out: list[Val] = []
    for result in data.results:
        if data.lanewise and len(shapes) == 1:
            same = [o for o, v in zip(operands, data.operands, strict=True) if v.shape == result.shape]
            rest = [o for o, v in zip(operands, data.operands, strict=True) if v.shape != result.shape]
            lane, every, maybe, acquired = gather(same, zero)
            for other in rest:
                every, maybe = every | other.every, maybe | other.all_reads
        else:
            lane, every, acquired = NONE, NONE, zero
            maybe = frozenset().union(*(o.all_reads for o in operands))
        lanes = unknown(result.shape) if result.index in relevant else None
        out.append(Val(lanes, lane, every, maybe, acquired))
    return out
