"""A verdict that hangs on where tensors lie says so, and only such a verdict."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from program_builder import I32, I64, Kernel, launch, tensor

from racefree.graph.program import Value
from racefree.proof.rungs import Options, decide
from racefree.verdict import ASSUMES_ADDRESSES, Status

LOW, HIGH = 1 << 20, 1 << 30


def less(kernel: Kernel, x: Value, y: Value) -> Value:
    return kernel.cmp("slt", x, y)


def far(kernel: Kernel, x: Value, y: Value) -> Value:
    return kernel.cmp("ne", kernel.op("arith.shrui", kernel.sub(y, x), kernel.const(63, I64)), kernel.const(0, I64))


def close(kernel: Kernel, x: Value, y: Value) -> Value:
    return kernel.cmp("eq", kernel.sub(y, x), kernel.const(HIGH - LOW, I64))


def same(kernel: Kernel, x: Value, y: Value) -> Value:
    return kernel.cmp("eq", x, y)


def is_null(kernel: Kernel, x: Value, y: Value) -> Value:
    return kernel.cmp("eq", x, kernel.const(0, I64))


def aligned(kernel: Kernel, x: Value, y: Value) -> Value:
    return kernel.cmp("eq", kernel.op("arith.remsi", x, kernel.const(16, I64)), kernel.const(0, I64))


def aligned_to_a_page(kernel: Kernel, x: Value, y: Value) -> Value:
    return kernel.cmp("eq", kernel.op("arith.andi", x, kernel.const(4095, I64)), kernel.const(0, I64))


def on_an_odd_word(kernel: Kernel, x: Value, y: Value) -> Value:
    return kernel.cmp("eq", kernel.op("arith.andi", x, kernel.const(4, I64)), kernel.const(4, I64))


@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("condition", [less, far, close, same, is_null, aligned, aligned_to_a_page, on_an_odd_word])
def test_qualifier(condition: Callable[[Kernel, Value, Value], Value], swapped: bool) -> None:
    """Every program stores one element where the condition holds, and one of its own where it does not."""
    kernel = Kernel()
    x, y, out = kernel.tensor("x"), kernel.tensor("y"), kernel.tensor("out")
    addresses = [kernel.op("tt.ptr_to_int", pointer, element=I64) for pointer in (x, y)]
    chosen = kernel.op("arith.select", condition(kernel, *addresses), kernel.const(0), kernel.pid(), element=I32)
    kernel.store(kernel.at(out, chosen))
    places = (HIGH, LOW) if swapped else (LOW, HIGH)
    facts = launch(4, x=tensor(places[0], 4), y=tensor(places[1], 4), out=tensor(1 << 40, 64))
    found = decide(kernel.program(), facts, Options())
    assert (ASSUMES_ADDRESSES in found.qualifiers) is (condition in (less, far, close, aligned_to_a_page))
    racy = condition in (aligned, aligned_to_a_page) or (condition in (less, close) and not swapped)
    assert found.status is (Status.RACES if racy or (condition is far and swapped) else Status.OK)


@pytest.mark.parametrize("decides", [True, False])
def test_what_is_only_stored_decides_nothing(decides: bool) -> None:
    kernel = Kernel()
    x, y, out = kernel.tensor("x"), kernel.tensor("y"), kernel.tensor("out")
    a, b = (kernel.op("tt.ptr_to_int", pointer, element=I64) for pointer in (x, y))
    order = kernel.op("arith.extui", kernel.cmp("slt", a, b), element=I64)
    place = kernel.op("arith.extsi", kernel.pid(), element=I64)
    kernel.store(kernel.at(out, kernel.add(place, order) if decides else place), order)
    found = decide(kernel.program(), launch(4, x=tensor(LOW, 4), y=tensor(HIGH, 4), out=tensor(1 << 40, 64)), Options())
    assert found.status is Status.OK
    assert (ASSUMES_ADDRESSES in found.qualifiers) is decides


@pytest.mark.parametrize("moved", [True, False])
def test_a_number_of_rounds_made_of_addresses_decides(moved: bool) -> None:
    kernel = Kernel()
    x, y, out = kernel.tensor("x"), kernel.tensor("y"), kernel.tensor("out")
    a, b = (kernel.op("tt.ptr_to_int", pointer, element=I64) for pointer in (x, y))
    rounds = kernel.sub(b, a) if moved else kernel.const(8, I64)
    pid = kernel.pid()
    with kernel.loop(kernel.const(0, I64), rounds, kernel.const(4, I64), element=I64):
        kernel.store(kernel.at(out, pid))
    facts = launch(4, x=tensor(LOW, 2), y=tensor(LOW + 8, 4), out=tensor(1 << 40, 64))
    found = decide(kernel.program(), facts, Options())
    assert found.status is Status.OK
    assert (ASSUMES_ADDRESSES in found.qualifiers) is moved
