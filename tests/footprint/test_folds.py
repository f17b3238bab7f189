"""Reductions and scans with any combiner, and histograms, against plain Python on every line of the tile."""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from launch_values import SITE, Drawing, spread

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Attribute, Combiner, Int, Op, Program, Value
from racefree.proof.footprint.folds import apply
from racefree.proof.footprint.memory import AddressSpace
from racefree.proof.footprint.ops import Context
from racefree.proof.footprint.values import Dense, Frame, Val
from racefree.proof.replay.folds import folded
from racefree.proof.replay.lanes import Lanes

I1, I32 = Int(1), Int(32)
NONE = np.zeros(1, dtype=np.int64)
CONTEXT = Context(
    (NONE, NONE, NONE), (1, 1, 1), AddressSpace(Program("kernel", (), (), SITE), LaunchFacts("kernel", (1, 1, 1), {}))
)
Pair = tuple[int, int]
Cells = npt.NDArray[Any]


class Writing:
    """A combiner under construction."""

    def __init__(self, arguments: int) -> None:
        self.arguments = tuple(Value(100 + i, I32) for i in range(arguments))
        self.body: list[Op] = []

    def op(self, name: str, *operands: Value, kind: Int = I32, **attributes: Attribute) -> Value:
        result = Value(200 + len(self.body), kind)
        self.body.append(Op(name, (result,), operands, attributes, SITE))
        return result

    def done(self, *results: Value) -> Combiner:
        return Combiner(self.arguments, tuple(self.body), results)


def best() -> Combiner:
    """The larger value with its index, the smaller index where values are equal."""
    w = Writing(4)
    value, index, value2, index2 = w.arguments
    more = w.op("arith.cmpi", value, value2, kind=I1, predicate="sgt")
    same = w.op("arith.cmpi", value, value2, kind=I1, predicate="eq")
    before = w.op("arith.cmpi", index, index2, kind=I1, predicate="slt")
    keep = w.op("arith.ori", more, w.op("arith.andi", same, before, kind=I1), kind=I1)
    return w.done(w.op("arith.select", keep, value, value2), w.op("arith.select", keep, index, index2))


def later_best() -> Combiner:
    """The larger value with its index, the later of two where values are equal: which that is depends on who meets whom."""
    w = Writing(4)
    value, index, value2, index2 = w.arguments
    more = w.op("arith.cmpi", value, value2, kind=I1, predicate="sgt")
    return w.done(w.op("arith.select", more, value, value2), w.op("arith.select", more, index, index2))


def greatest_and_least() -> Combiner:
    """No one element is the result, but any order makes it."""
    w = Writing(4)
    a, b, a2, b2 = w.arguments
    return w.done(w.op("arith.maxsi", a, a2), w.op("arith.minsi", b, b2))


def composed() -> Combiner:
    """Affine maps x -> a x + b, the earlier one first: associative, but the order matters."""
    w = Writing(4)
    a, b, a2, b2 = w.arguments
    return w.done(w.op("arith.muli", a, a2), w.op("arith.addi", w.op("arith.muli", b, a2), b2))


def shifted_sum() -> Combiner:
    """Not associative at all: a constant is added each time, and the later operand counts double."""
    w = Writing(4)
    a, b, a2, b2 = w.arguments
    one = w.op("arith.constant", value=1)
    return w.done(w.op("arith.addi", w.op("arith.addi", a, a2), w.op("arith.addi", a2, one)), w.op("arith.subi", b, b2))


def wrapped(number: int) -> int:
    return (number + (1 << 31)) % (1 << 32) - (1 << 31)


def best_of(left: Pair, right: Pair) -> Pair:
    return left if (left[0], -left[1]) > (right[0], -right[1]) else right


def composed_of(left: Pair, right: Pair) -> Pair:
    return wrapped(left[0] * right[0]), wrapped(left[1] * right[0] + right[1])


def lines_of(tile: Cells, axis: int) -> Cells:
    return np.moveaxis(tile, axis, -1)


@pytest.mark.parametrize(
    ("combiner", "plain", "name"),
    [(best(), best_of, "tt.reduce"), (best(), best_of, "tt.scan"), (composed(), composed_of, "tt.scan")],
    ids=["best", "running best", "running composition"],
)
@pytest.mark.parametrize("seed", range(25))
def test_a_fold_is_what_python_folds(
    combiner: Combiner, plain: Callable[[Pair, Pair], Pair], name: str, seed: int
) -> None:
    drawn = Drawing(seed, dims=2, bits=32)
    drawn.shape = (drawn.random.choice([1, 2, 4, 8]), drawn.random.choice([1, 2, 4, 8]))
    axis, reverse = drawn.random.randrange(2), name == "tt.scan" and drawn.random.random() < 0.5
    operands = tuple(Value(i, I32, drawn.shape) for i in range(2))
    rest = drawn.shape if name == "tt.scan" else drawn.shape[:axis] + drawn.shape[axis + 1 :]
    results = tuple(Value(10 + i, I32, rest) for i in range(2))
    op = Op(name, results, operands, {"axis": axis, "combine": combiner, "reverse": reverse}, SITE)
    values = [drawn.value() for _ in operands]
    found = [spread(v, drawn.frame, rest) for v in _numbers(apply(op, list(values), CONTEXT, drawn.frame))]
    given = [spread(v, drawn.frame, drawn.shape) for v in values]
    lead = 1 + len(drawn.frame.loops)
    for at in product(*(range(n) for n in drawn.whole[:lead])):
        (a, sure_a), (b, sure_b) = ((lines_of(x[at], axis), lines_of(k[at], axis)) for x, k in given)
        out = [(x[at], k[at]) for x, k in found]
        if name == "tt.scan":
            out = [(lines_of(x, axis), lines_of(k, axis)) for x, k in out]
        for line in np.ndindex(a.shape[:-1]):
            pairs = list(zip(a[line].tolist(), b[line].tolist(), strict=True))
            sure = (sure_a[line] & sure_b[line]).tolist()
            if reverse:
                pairs, sure = pairs[::-1], sure[::-1]
            running, known = [pairs[0]], [sure[0]]
            for pair, each in zip(pairs[1:], sure[1:], strict=True):
                running.append(plain(running[-1], pair))
                known.append(known[-1] and each)
            if reverse:
                running, known = running[::-1], known[::-1]
            for place in range(len(pairs)) if name == "tt.scan" else [-1]:
                for result, (numbers, certain) in enumerate(out):
                    cell = (*line, place) if name == "tt.scan" else line
                    if certain[cell]:
                        assert numbers[cell] == running[place][result]
                    assert certain[cell] or not known[place]


def _numbers(values: tuple[Val, ...]) -> list[Dense]:
    assert all(isinstance(v, Dense) for v in values)
    return [v for v in values if isinstance(v, Dense)]


REDUCED = [
    (composed(), [2, 3, 5, 7], [1, 4, 2, 8], None),
    (composed(), [2, 1, 1, 2], [0, 1, -1, 0], None),
    (shifted_sum(), [2, 3, 5, 7], [1, 4, 2, 8], None),
    (later_best(), [1, 5, 5, 1], [0, 1, 2, 3], None),
    (later_best(), [1, 1, 5, 1], [0, 1, 2, 3], (5, 2)),
    (later_best(), [5, 1, 5, 1], [7, 1, 7, 3], (5, 7)),
    (greatest_and_least(), [1, 5, 5, 2], [6, 1, 2, 3], (5, 1)),
]


@pytest.mark.parametrize(("combiner", "one", "two", "expected"), REDUCED)
def test_a_reduction_is_known_where_no_order_of_the_elements_changes_it(
    combiner: Combiner, one: list[int], two: list[int], expected: Pair | None
) -> None:
    operands = tuple(Value(i, I32, (4,)) for i in range(2))
    op = Op("tt.reduce", (Value(10, I32), Value(11, I32)), operands, {"axis": 0, "combine": combiner}, SITE)
    tiles: list[Val] = [Dense(np.array([one])), Dense(np.array([two]))]
    found = _numbers(apply(op, tiles, CONTEXT, Frame(1, (), 1 << 10)))
    lanes = [Lanes(np.array(x).astype(np.uint32).astype(np.uint64), np.ones(4, np.bool_)) for x in (one, two)]
    replayed = folded(op, lanes, lambda _: None)
    assert replayed is not None
    if expected is None:
        assert any(v.known is not None and not v.known.any() for v in found)
        assert not all(r.known for r in replayed)
    else:
        assert all(v.known is None for v in found)
        assert tuple(int(v.data[0]) for v in found) == expected
        assert tuple(int(r.bits) for r in replayed if r.known) == expected


@pytest.mark.parametrize("seed", range(40))
def test_bins(seed: int) -> None:
    draw = random.Random(seed)
    size, bins, rows = draw.choice([2, 4, 8]), draw.choice([2, 4]), draw.choice([1, 3])
    low, high = draw.choice([(0, bins - 1), (0, bins - 1), (-1, bins)])
    data = np.array([[draw.randint(low, high) for _ in range(size)] for _ in range(rows)])
    sure = np.array([[draw.random() < 0.95 for _ in range(size)] for _ in range(rows)])
    mask = np.array([[draw.random() < 0.6 for _ in range(size)] for _ in range(rows)])
    masked = draw.random() < 0.5
    operands = (Value(0, I32, (size,)), *([Value(1, I32, (size,))] if masked else []))
    op = Op("tt.histogram", (Value(10, I32, (bins,)),), operands, {}, SITE)
    args: list[Val] = [Dense(data, sure), *([Dense(mask.astype(np.int64))] if masked else [])]
    frame = Frame(rows, (), 1 << 10)
    numbers, certain = spread(_numbers(apply(op, args, CONTEXT, frame))[0], frame, (bins,))
    for row in range(rows):
        used = [i for i in range(size) if mask[row, i] or not masked]
        known = all(sure[row, i] and 0 <= data[row, i] < bins for i in used)
        assert (certain[row] == known).all()
        if known:
            assert numbers[row].tolist() == [sum(data[row, i] == b for i in used) for b in range(bins)]
        lanes = [Lanes(data[row].astype(np.int64).view(np.uint64) & np.uint64(0xFFFFFFFF), sure[row])]
        if masked:
            lanes.append(Lanes(mask[row].astype(np.uint64), np.ones(size, np.bool_)))
        replayed = folded(op, lanes, lambda _: None)
        assert replayed is not None
        assert (replayed[0].known == known).all()
        if known:
            assert (replayed[0].bits == numbers[row].astype(np.uint64)).all()
