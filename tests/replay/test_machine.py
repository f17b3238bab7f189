"""Stepping one instance: which executions happen, where, under which loops and barriers, and what stays unknown."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from racefree.access import Kind, Scope, Sem, Site
from racefree.graph.launch import LaunchFacts, Scalar, Storage, Tensor
from racefree.graph.program import (
    Access,
    Attribute,
    Barrier,
    Data,
    Element,
    Float,
    For,
    Guard,
    If,
    Int,
    Op,
    Parameter,
    Program,
    Ptr,
    Statement,
    Value,
    While,
)
from racefree.proof.replay import (
    Event,
    Fence,
    Lanes,
    Options,
    Unreplayable,
    Where,
    confirm,
    left_behind,
    run_program,
    shared_bytes,
    steps,
    untouched_memory,
)

I1, I32, POINTER = Int(1), Int(32), Ptr(4)


class Builder:
    """Numbers values and accesses, so that a test reads like the kernel it stands for."""

    def __init__(self) -> None:
        self.values = 0
        self.accesses = 0

    def value(self, element: Element = I32, shape: tuple[int, ...] = ()) -> Value:
        self.values += 1
        return Value(self.values, element, shape)

    def op(
        self,
        name: str,
        *operands: Value,
        element: Element = I32,
        shape: tuple[int, ...] = (),
        **attributes: Attribute,
    ) -> tuple[Op, Value]:
        result = self.value(element, shape)
        return Op(name, (result,), operands, attributes, Site("k.py", self.values)), result

    def const(self, number: int, element: Element = I32) -> tuple[Op, Value]:
        return self.op("arith.constant", element=element, value=number)

    def access(
        self,
        kind: Kind,
        pointer: Value,
        *operands: Value,
        mask: Value | None = None,
        other: Value | None = None,
        element: Element = I32,
        rmw: str | None = None,
    ) -> Access:
        result = None if kind is Kind.STORE else self.value(element, pointer.shape)
        number, self.accesses = self.accesses, self.accesses + 1
        sem = (Sem.RELAXED, Scope.GPU) if kind.atomic else (None, None)
        return Access(
            number, kind, pointer, mask, operands, result, other, 4, Site("k.py", 100 + number), *sem, rmw
        )  # fmt: skip


def tensor(address: int, contents: Sequence[int] | None, count: int = 8) -> Tensor:
    data = None if contents is None else np.array(contents, dtype=np.int32).view(np.uint8)
    size = 4 * (count if contents is None else len(contents))
    return Tensor(address, 4, "int32", (size // 4,), (1,), Storage(address, size, data))


def program(body: Sequence[Statement], **parameters: Value) -> Program:
    listed = tuple(Parameter(name, value) for name, value in parameters.items())
    return Program("k", listed, tuple(body), Site("k.py", 1))


def facts(grid: tuple[int, int, int] = (4, 1, 1), **arguments: Tensor | Scalar) -> LaunchFacts:
    return LaunchFacts("k", grid, dict(arguments))


def test_a_masked_tile_store_touches_the_lanes_its_mask_leaves() -> None:
    b = Builder()
    x, n = b.value(POINTER), b.value()
    o1, pid = b.op("tt.get_program_id", axis=0)
    o2, four = b.const(4)
    o3, base = b.op("arith.muli", pid, four)
    o4, lanes = b.op("tt.make_range", shape=(4,), start=0, end=4)
    o5, spread = b.op("tt.splat", base, shape=(4,))
    o6, i = b.op("arith.addi", spread, lanes, shape=(4,))
    o7, bound = b.op("tt.splat", n, shape=(4,))
    o8, mask = b.op("arith.cmpi", i, bound, element=I1, shape=(4,), predicate="slt")
    o9, splat = b.op("tt.splat", x, element=POINTER, shape=(4,))
    o10, p = b.op("tt.addptr", splat, i, element=POINTER, shape=(4,))
    store = b.access(Kind.STORE, p, i, mask=mask)
    kernel = program([o1, o2, o3, o4, o5, o6, o7, o8, o9, o10, store], x=x, n=n)
    launch = facts(x=tensor(1000, None, 16), n=Scalar(6))
    (event,) = run_program(kernel, launch, (1, 0, 0))
    assert event.addresses.tolist() == [1016, 1020, 1024, 1028]
    assert event.active.tolist() == [True, True, False, False]
    assert event.operands[0].bits.tolist() == [4, 5, 6, 7]
    assert (event.index, event.iterations, event.epoch) == (0, (), 0)


def test_loops_count_iterations_and_barriers_count_epochs() -> None:
    b = Builder()
    x, n = b.value(POINTER), b.value()
    o1, low = b.const(2)
    o2, step = b.const(3)
    k, carried, following, out = b.value(), b.value(POINTER), b.value(POINTER), b.value(POINTER)
    inner = Op("tt.addptr", (following,), (carried, k), {}, Site("k.py", 9))
    store = b.access(Kind.STORE, carried, k)
    half = Barrier(True, False, Site("k.py", 10))
    full = Barrier(True, True, Site("k.py", 11))
    loop = For(k, low, n, step, (carried,), (x,), (store, half, full, inner), (following,), (out,), False, Site("k", 8))
    after = b.access(Kind.STORE, out, n)
    kernel = program([o1, o2, loop, after], x=x, n=n)
    events = run_program(kernel, facts(x=tensor(1000, None, 64), n=Scalar(9)), (0, 0, 0))
    seen = [(e.index, e.iterations, e.epoch, int(e.addresses)) for e in events]
    assert seen == [
        (0, (0,), 0, 1000),
        (0, (1,), 1, 1000 + 4 * 2),
        (0, (2,), 2, 1000 + 4 * (2 + 5)),
        (1, (), 3, 1000 + 4 * (2 + 5 + 8)),
    ]


def test_a_loop_with_no_trip_returns_its_inits() -> None:
    b = Builder()
    x, n = b.value(POINTER), b.value()
    o1, zero = b.const(0)
    o2, one = b.const(1)
    k, carried, out = b.value(), b.value(POINTER), b.value(POINTER)
    body = (b.access(Kind.STORE, carried, k),)
    loop = For(k, zero, n, one, (carried,), (x,), body, (carried,), (out,), False, Site("k", 8))
    after = b.access(Kind.STORE, out, n)
    kernel = program([o1, o2, loop, after], x=x, n=n)
    events = run_program(kernel, facts(x=tensor(1000, None), n=Scalar(-1)), (0, 0, 0))
    assert [(e.index, int(e.addresses)) for e in events] == [(1, 1000)]
    unsigned = program([o1, o2, For(*[getattr(loop, f) for f in _FOR], True, loop.site), after], x=x, n=n)
    with pytest.raises(Unreplayable, match="more than 10 steps"):
        run_program(unsigned, facts(x=tensor(1000, None), n=Scalar(-1)), (0, 0, 0), options=Options(max_steps=10))


_FOR = ("induction", "lower", "upper", "step", "carried", "inits", "body", "yields", "results")


def indirect(contents: Sequence[int] | None) -> tuple[Program, LaunchFacts, Access]:
    """store(x + load(table + pid)): the address comes from memory."""
    b = Builder()
    x, table = b.value(POINTER), b.value(POINTER)
    o1, pid = b.op("tt.get_program_id", axis=0)
    o2, at = b.op("tt.addptr", table, pid, element=POINTER)
    load = b.access(Kind.LOAD, at)
    assert load.result is not None
    o3, p = b.op("tt.addptr", x, load.result, element=POINTER)
    store = b.access(Kind.STORE, p, pid)
    kernel = program([o1, o2, load, o3, store], x=x, table=table)
    return kernel, facts(x=tensor(1000, None), table=tensor(2000, contents)), store


def test_addresses_come_from_recorded_contents() -> None:
    kernel, launch, store = indirect([3, 1, 3, -1])
    stores = [run_program(kernel, launch, (p, 0, 0))[1] for p in range(4)]
    assert [int(e.addresses) for e in stores] == [1012, 1004, 1012, 996]
    witness = [Where(store.index, (p, 0, 0), (), ()) for p in range(4)]
    assert confirm(kernel, launch, witness[0], witness[2])
    assert not confirm(kernel, launch, witness[0], witness[1])
    assert not confirm(kernel, launch, witness[0], witness[0])
    assert not confirm(kernel, launch, witness[0], Where(store.index, (4, 0, 0), (), ()))
    shared = shared_bytes(kernel, launch, witness[0], witness[2])
    assert shared is not None
    assert shared.byte == 1012


def test_contents_that_are_missing_or_may_change_are_refused_where_they_matter() -> None:
    kernel, launch, _ = indirect(None)
    with pytest.raises(Unreplayable, match="an address is not known") as caught:
        run_program(kernel, launch, (0, 0, 0))
    assert caught.value.site == Site("k.py", 101)
    kernel, launch, _ = indirect([0, 1, 2, 3])
    aliased = facts(x=launch.arguments["table"], table=launch.arguments["table"])  # type: ignore[arg-type]
    with pytest.raises(Unreplayable, match="an address is not known"):
        run_program(kernel, aliased, (0, 0, 0))
    outside = facts(x=tensor(1000, None), table=tensor(2000, [7]))
    assert int(run_program(kernel, outside, (0, 0, 0))[1].addresses) == 1028
    with pytest.raises(Unreplayable, match="an address is not known"):
        run_program(kernel, outside, (1, 0, 0))


def test_bytes_marked_one_by_one_leave_their_neighbours_known() -> None:
    kernel, launch, _ = indirect([0, 1, 2, 3])
    memory = untouched_memory(launch)
    assert memory.mark_bytes(np.array([2006]), 4)
    assert not memory.mark_bytes(np.array([2008]), 2)
    assert int(run_program(kernel, launch, (0, 0, 0), memory)[1].addresses) == 1000
    for p in (1, 2):
        with pytest.raises(Unreplayable):
            run_program(kernel, launch, (p, 0, 0), memory)
    assert int(run_program(kernel, launch, (3, 0, 0), memory)[1].addresses) == 1012


def test_guards_skip_and_branches_choose() -> None:
    b = Builder()
    x = b.value(POINTER)
    o1, pid = b.op("tt.get_program_id", axis=0)
    o2, two = b.const(2)
    o3, early = b.op("arith.cmpi", pid, two, element=I1, predicate="slt")
    o4, one = b.const(1)
    o5, is_one = b.op("arith.cmpi", pid, one, element=I1, predicate="eq")
    chosen = b.value()
    branch = If(is_one, (), (two,), (), (one,), (chosen,), Site("k", 5))
    o6, p = b.op("tt.addptr", x, chosen, element=POINTER)
    store = b.access(Kind.STORE, p, pid)
    kernel = program([o1, o2, o3, Guard(early, (o4, o5, branch, o6, store), Site("k", 4))], x=x)
    launch = facts(x=tensor(1000, None))
    assert [int(e.addresses) for p in range(4) for e in run_program(kernel, launch, (p, 0, 0))] == [1004, 1008]


def test_a_spin_observes_what_it_is_sent() -> None:
    b = Builder()
    x = b.value(POINTER)
    o1, one = b.const(1)
    o2, zero = b.const(0)
    poll = b.access(Kind.RMW, x, zero, rmw="add")
    assert poll.result is not None
    o3, waiting = b.op("arith.cmpi", poll.result, one, element=I1, predicate="ne")
    loop = While((), (), (poll, o3), waiting, (), (), (), (), (), Site("k", 3))
    fence = Barrier(True, True, Site("k", 4))
    store = b.access(Kind.STORE, x, one)
    kernel = program([o1, o2, loop, fence, store], x=x)
    launch = facts(x=tensor(1000, [0]))
    with pytest.raises(Unreplayable, match="a loop condition is not known"):
        run_program(kernel, launch, (0, 0, 0))
    stepper = steps(kernel, launch, (0, 0, 0), untouched_memory(launch))
    first = next(stepper)
    assert isinstance(first, Event)
    assert first.iterations == (0,)
    second = stepper.send(Lanes(np.array(0, dtype=np.uint64), np.array(True)))
    assert isinstance(second, Event)
    assert second.iterations == (1,)
    third = stepper.send(Lanes(np.array(1, dtype=np.uint64), np.array(True)))
    assert isinstance(third, Fence)
    assert third.orders_memory
    last = stepper.send(None)
    assert isinstance(last, Event)
    assert (last.index, last.epoch, last.order) == (store.index, 1, 3)


def test_dependence_stays_in_its_lane_until_lanes_are_mixed() -> None:
    b = Builder()
    x = b.value(POINTER)
    o1, lanes = b.op("tt.make_range", shape=(2,), start=0, end=2)
    o2, splat = b.op("tt.splat", x, element=POINTER, shape=(2,))
    o3, p = b.op("tt.addptr", splat, lanes, element=POINTER, shape=(2,))
    load = b.access(Kind.LOAD, p, element=Float(32))
    assert load.result is not None
    moved, mixed = b.value(Float(32), (2,)), b.value(Float(32))
    scaled = Data("arith.mulf", (moved,), (load.result, load.result), True, Site("k", 5))
    total = Data("tt.reduce", (mixed,), (moved,), False, Site("k", 6))
    body = [o1, o2, o3, load, scaled, total, b.access(Kind.STORE, p, moved), b.access(Kind.STORE, x, mixed)]
    kernel, launch = program(body, x=x), facts(x=tensor(1000, None))
    together = run_program(kernel, launch, (0, 0, 0), options=Options(track=True))
    assert [e.first_read for e in together] == [0, None, None]
    assert [e.depends.tolist() for e in together if e.depends is not None] == [[0, 0], [1, 2], 3]
    apart = run_program(kernel, launch, (0, 0, 0), options=Options(track=True, cross_lanes=False))
    assert [e.depends.tolist() for e in apart if e.depends is not None] == [[0, 0], [1, 2], 0]


@pytest.mark.parametrize(
    ("rmw", "old", "operand", "expected"),
    [
        ("add", 0xFFFFFFFF, 2, 1),
        ("max", 0xFFFFFFFF, 2, 2),
        ("umax", 0xFFFFFFFF, 2, 0xFFFFFFFF),
        ("min", 0xFFFFFFFF, 2, 0xFFFFFFFF),
        ("umin", 0xFFFFFFFF, 2, 2),
        ("exch", 5, 2, 2),
        ("and", 6, 3, 2),
        ("or", 6, 3, 7),
        ("xor", 6, 3, 5),
    ],
)
def test_what_an_atomic_leaves_behind(rmw: str, old: int, operand: int, expected: int) -> None:
    b = Builder()
    access = b.access(Kind.RMW, b.value(POINTER), b.value(), rmw=rmw)
    value = [Lanes(np.array([v], dtype=np.uint64), np.array([True])) for v in (old, operand)]
    assert left_behind(access, value[0], value[1:]).scalar() == expected


def test_a_compare_and_swap_swaps_only_what_it_expected() -> None:
    b = Builder()
    access = b.access(Kind.CAS, b.value(POINTER), b.value(), b.value())
    old, expected, desired = (
        Lanes(np.array(v, dtype=np.uint64), np.array([True, True])) for v in ([0, 1], [0, 0], [9, 9])
    )
    assert left_behind(access, old, [expected, desired]).bits.tolist() == [9, 1]
