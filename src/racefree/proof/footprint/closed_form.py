"""Which loops can be folded into an axis: trip counts, and carried values that grow by the same amount each iteration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from racefree.graph.program import Access, Data, For, If, Int, Op, Ptr, Statement, Value, While, walk
from racefree.proof.footprint.arith import add, mul, sub
from racefree.proof.footprint.epochs import Rate, rate_of
from racefree.proof.footprint.ops import HANDLERS
from racefree.proof.footprint.tiles import splat
from racefree.proof.footprint.values import (
    Affine,
    Bits,
    Dense,
    Frame,
    Number,
    Truth,
    Unknown,
    Val,
    constant,
    densify,
    uniform,
    unsigned_cells,
)

if TYPE_CHECKING:
    from racefree.proof.footprint.evaluate import Evaluation


@dataclass(frozen=True, slots=True)
class Plan:
    """How a loop folds: the growth of each carried value the slice needs (None: it never changes), and barriers a turn."""

    growth: dict[int, Number | None]
    rate: Rate


def trip_count(loop: For, bounds: list[Number], frame: Frame, live: Bits | None = None) -> Affine | Dense | Unknown:
    """How often the body runs, per row and enclosing iteration; 0 where `live` tells that the loop is not reached."""
    lower, upper, step = bounds
    assert not (isinstance(lower, Unknown))
    assert not (isinstance(upper, Unknown))
    assert not (isinstance(step, Unknown))
    cells = [densify(b, frame, ()) for b in (lower, upper, step)]
    low, high, by = (c.data for c in cells)
    if any(c.known is not None for c in cells):
        reached = np.ones((), np.bool_) if live is None else live
        sure = np.ones((), np.bool_)
        for cell in cells:
            sure = sure if cell.known is None else sure & cell.known
        if (reached & ~sure).any():
            return Unknown("a bound of the loop is not known", loop.site)
        low, high, by = (np.where(sure, x, fill) for x, fill in ((low, 0), (high, 0), (by, 1)))
    if (by <= 0).any():
        return Unknown("the step of the loop is not positive", loop.site)
    if loop.unsigned and isinstance(loop.induction.element, Int):
        first, last = (unsigned_cells(x, loop.induction.element.bits) for x in (low, high))
        span = np.where(last > first, last - first, 0).astype(np.int64)
    else:
        span = np.where(high > low, high - low, 0)
    if (span < 0).any():
        return Unknown("the loop's range is longer than 64 bits can tell", loop.site)
    trips = -(-span // by)
    if all(isinstance(b, Affine) and uniform(b) for b in bounds):
        return Affine(trips.reshape(-1), (0,) * len(frame.loops))
    return Dense(trips)


def plan(loop: For, state: Evaluation) -> Plan | None:
    """The closed form of a loop, or None when its iterations have to be taken one by one."""
    rate = rate_of(loop.body, state.facts)
    if rate.barriers is None:
        return None
    hoist = _Hoist(loop, state)
    growth: dict[int, Number | None] = {}
    needed = state.slice.values
    for position, (value, result) in enumerate(zip(loop.carried, loop.results, strict=True)):
        if not {value.index, result.index} & needed:
            continue
        if loop.yields[position].index in (value.index, loop.inits[position].index):
            growth[position] = None
            continue
        total = hoist.increment(loop.yields[position], value)
        if total is None:
            return None
        growth[position] = total
    return Plan(growth, rate)


class _Hoist:
    """Evaluates, before a loop runs, values that are the same in all its iterations."""

    def __init__(self, loop: For, state: Evaluation) -> None:
        self.loop, self.state = loop, state
        self.defined: dict[int, Statement] = {}
        for statement in walk(loop.body):
            if isinstance(statement, Op | Data | For | If | While):
                self.defined.update((r.index, statement) for r in statement.results)
            elif isinstance(statement, Access) and statement.result is not None:
                self.defined[statement.result.index] = statement
        self.inner = {loop.induction.index} | {c.index for c in loop.carried}
        for statement in walk(loop.body):
            if isinstance(statement, For):
                self.inner |= {statement.induction.index, *(c.index for c in statement.carried)}
            elif isinstance(statement, While):
                self.inner |= {a.index for a in (*statement.before_args, *statement.after_args)}

    def invariant(self, value: Value) -> Val | None:
        """The value, if no iteration can change it."""
        if value.index in self.inner:
            for carried, init, last in zip(self.loop.carried, self.loop.inits, self.loop.yields, strict=True):
                if carried.index == value.index and last.index == value.index:
                    return self.state.get(init)
            return None
        statement = self.defined.get(value.index)
        if statement is None:
            return self.state.get(value) if value.index in self.state.env else None
        if not isinstance(statement, Op) or len(statement.results) != 1:
            return None
        handler = HANDLERS.get(statement.name)
        if handler is None:
            return None
        operands = []
        for operand in statement.operands:
            found = self.invariant(operand)
            if found is None:
                return None
            operands.append(found)
        return handler(statement, operands, self.state.context, self.state.frame)[0]

    def increment(self, value: Value, start: Value) -> Number | None:
        """What one iteration adds to `start` to give `value` (bytes for pointers), if that never changes."""
        if value.index == start.index:
            return constant(0, len(self.state.frame.loops) + len(start.shape))
        statement = self.defined.get(value.index)
        if isinstance(statement, For):
            return self._nested(statement, value, start)
        if not isinstance(statement, Op) or statement.name not in ("arith.addi", "arith.subi", "tt.addptr"):
            return None
        left, right = statement.operands
        sides = [(left, right)] if statement.name != "arith.addi" else [(left, right), (right, left)]
        for through, amount in sides:
            before = self.increment(through, start)
            if before is None:
                continue
            by = self.invariant(amount)
            if by is None or isinstance(by, Truth | Unknown):
                return None
            return self._sum(statement, before, by, start)
        return None

    def _sum(self, statement: Op, before: Number, by: Number, start: Value) -> Number:
        frame, shape = self.state.frame, start.shape
        if isinstance(start.element, Ptr):
            pointee = statement.results[0].element
            size = pointee.pointee_bytes if isinstance(pointee, Ptr) else 1
            by = mul(by, constant(size, len(frame.loops) + len(shape)), 64, frame, shape)
        combine = sub if statement.name == "arith.subi" else add
        bits = start.element.bits if isinstance(start.element, Int) else 64
        return combine(before, by, bits, frame, shape)

    def _nested(self, inner: For, value: Value, start: Value) -> Number | None:
        """A carried value that an inner loop advances: its trips times what one inner iteration adds."""
        position = next(i for i, r in enumerate(inner.results) if r.index == value.index)
        before = self.increment(inner.inits[position], start)
        bounds = [self.invariant(v) for v in (inner.lower, inner.upper, inner.step)]
        if before is None or any(b is None or isinstance(b, Truth | Unknown) for b in bounds):
            return None
        once = self._inner_increment(inner, position)
        frame, shape = self.state.frame, start.shape
        trips = trip_count(inner, bounds, frame)  # type: ignore[arg-type]
        if once is None or isinstance(trips, Unknown):
            return None
        bits = start.element.bits if isinstance(start.element, Int) else 64
        often = splat(trips, len(shape))
        assert not isinstance(often, Truth)
        total = mul(often, once, bits, frame, shape)
        return add(before, total, bits, frame, shape)

    def _inner_increment(self, inner: For, position: int) -> Number | None:
        return self.increment(inner.yields[position], inner.carried[position])


__all__ = ["Plan", "plan", "trip_count"]
