"""The symbolic reading predicts exactly the executions that plain evaluation finds, lane for lane and round for round."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

import smt_kernels as k  # noqa: E402
from evaluating import executions, integer  # noqa: E402

from racefree.graph.launch import Tensor  # noqa: E402
from racefree.graph.program import Program, Ptr  # noqa: E402
from racefree.proof.replay import run_program  # noqa: E402
from racefree.proof.symbolic.bounds import Bounder  # noqa: E402
from racefree.proof.symbolic.lowering import lower  # noqa: E402
from racefree.proof.symbolic.terms import (  # noqa: E402
    Fn,
    Sum,
    Term,
    Var,
    VarKind,
    apply,
    evaluate,
    number,
    variable,
)
from racefree.triton.capture import capture_one  # noqa: E402
from racefree.ttir.read import read_program  # noqa: E402


def launch(kernel: Any, grid: tuple[int, ...], arguments: dict[str, Any]) -> tuple[Program, Any]:
    captured = capture_one(kernel, (), arguments, grid, target="cuda:80").configs[0]
    assert captured.module is not None
    return read_program(captured.module), captured.facts


def ints(n: int) -> Any:
    return torch.zeros(n, dtype=torch.int32)


CASES = {
    "add": (k.add, (5,), {"x": ints(64), "o": ints(64), "n": 60, "STEP": 16, "BLOCK": 16}),
    "walk": (k.walk, (3,), {"x": ints(300), "o": ints(300), "n": 45, "PITCH": 64, "HOP": 16}),
    "backwards": (k.backwards, (3,), {"o": ints(90), "n": 9, "S": 20}),
    "nested": (k.nested, (2,), {"o": ints(90), "rows": 2, "cols": 5, "PITCH": 40}),
    "swizzle": (k.swizzle, (15,), {"o": ints(64), "m": 5, "n": 3, "GROUP": 2}),
    "tile": (k.tile, (2, 3), {"o": ints(400), "n": 11, "PITCH": 12, "TRANS": False}),
    "tile transposed": (k.tile, (2, 3), {"o": ints(400), "n": 11, "PITCH": 12, "TRANS": True}),
    "bits": (k.bits, (2,), {"o": ints(400), "C": 5, "D": 22}),
    "bits negative": (k.bits, (2,), {"o": ints(400), "C": 6, "D": -4}),
    "turns": (k.turns, (2,), {"o": ints(900), "n": 8, "FIRST": 3}),
    "shifts": (k.shifts, (2,), {"o": ints(1 << 17), "LOG": 4}),
    "grid stride": (k.grid_stride, (3,), {"o": ints(100), "n": 90, "BLOCK": 8, "ALL": True}),
    "own stride": (k.grid_stride, (3,), {"o": ints(100), "n": 30, "BLOCK": 8, "ALL": False}),
    "persistent": (k.persistent, (4,), {"o": ints(300), "n": 17, "BLOCK": 16}),
    "branch": (k.branch, (6,), {"o": ints(200), "n": 120, "ODD": 1}),
    "after loop": (k.after_loop, (2,), {"o": ints(100), "n": 4, "S": 40}),
    "after no loop": (k.after_loop, (2,), {"o": ints(100), "n": 0, "S": 40}),
    "exchange": (k.exchange, (2,), {"x": ints(600), "o": ints(900), "n": 3, "FRONT": True, "BACK": True, "BUFFERS": 2}),
}


@pytest.mark.parametrize("parameters", ["bound", "free"])
@pytest.mark.parametrize("name", CASES)
def test_reading_is_what_runs(name: str, parameters: str) -> None:
    kernel, grid, arguments = CASES[name]
    program, facts = launch(kernel, grid, arguments)
    numbers = {n: int(a.value) for n, a in facts.arguments.items() if hasattr(a, "value") and a.value is not None}

    def bind(parameter: Any) -> Term | None:
        argument = facts.arguments[parameter.name]
        if isinstance(argument, Tensor):
            assert isinstance(parameter.value.element, Ptr)
            return number(argument.address)
        if parameters == "free":
            return variable(Var(VarKind.PARAMETER, parameter.name))
        return number(numbers[parameter.name])

    reading = lower(program, bind, frozenset())
    got = executions(reading, numbers, facts.grid)
    want = set()
    for x in range(facts.grid[0]):
        for y in range(facts.grid[1]):
            for event in run_program(program, facts, (x, y, 0)):
                for lane in (
                    zip(*event.active.nonzero(), strict=True) if event.active.shape else [()] * bool(event.active)
                ):
                    place = tuple(int(n) for n in lane)
                    want.add((event.index, (x, y, 0), event.iterations, place, int(event.addresses[place])))
    assert got == want


X = variable(Var(VarKind.PARAMETER, "x"))


@given(st.integers(-300, 300), st.integers(-300, 300))
def test_bit_operations_with_a_constant(x: int, c: int) -> None:
    for function in (Fn.AND, Fn.OR, Fn.XOR):
        assert integer(apply(function, X, number(c)), {"x": x}) == evaluate(function, x, c)


@given(st.integers(-40, 40), st.integers(0, 5), st.integers(-40, 40), st.sampled_from(list(Fn)), st.integers(-6, 6))
def test_bounds_hold(low: int, extent: int, a: int, function: Fn, b: int) -> None:
    term = apply(function, variable(Var(VarKind.LANE, "x", low, low + extent)), number(b))
    bottom, top = Bounder().of(term)
    for x in range(low, low + extent + 1):
        try:
            value = integer(term, {"x": x})
        except (AssertionError, ZeroDivisionError):
            continue
        assert bottom is None or bottom <= value
        assert top is None or value <= top


def test_equal_sums_are_equal_terms() -> None:
    y = variable(Var(VarKind.PARAMETER, "y"))
    left = Sum(1, (*X.parts, *y.parts))
    from racefree.proof.symbolic.terms import add

    assert add((y, X, number(1))) == add((number(1), X, y)) == left
