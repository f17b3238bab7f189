"""Printed formulas are Python: evaluated with the values of an execution, each part gives the element it touches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from corpus_files import Entry, entries, launch, load
from generation import generate
from judging import prepared, write_module
from lowering import CompileFailed

from racefree.errors import Refused
from racefree.graph.launch import LaunchFacts, Scalar, Tensor
from racefree.graph.program import Program
from racefree.proof.formula import Formulas
from racefree.proof.formula.terms import Binary, Name, Number, Varies, binary, chain, element, printed
from racefree.proof.outcome import Side
from racefree.proof.replay import Unreplayable, pointer_roots, run_program

ENTRIES = entries(synchronising=False)
WHOLE = 10_000
"""A width that shortens nothing."""


class Axes(int):
    """A number that is also the tuple it is the first of."""

    values: tuple[int, ...]

    def __new__(cls, values: tuple[int, ...]) -> Axes:
        made = super().__new__(cls, values[0] if values else 0)
        made.values = tuple(values)
        return made

    def __getitem__(self, axis: int) -> int:
        return self.values[axis]


def names_of(facts: LaunchFacts, side: Side) -> dict[str, Any]:
    wide = [n for n, extent in enumerate(side.access.shape) if extent > 1]
    lane = side.lane if len(side.access.shape) != 1 else (side.lane[wide[0]] if wide else 0,)
    found: dict[str, Any] = {"pid": Axes(side.program), "lane": Axes(lane), "iteration": Axes(side.iterations)}
    found |= {"grid": facts.grid, "min": min, "max": max, "__builtins__": {}}
    for name, argument in facts.arguments.items():
        if isinstance(argument, Scalar):
            found[name] = argument.value
        elif isinstance(argument, Tensor) and argument.storage.contents is not None:
            start = argument.address - argument.storage.address
            size = argument.element_bytes
            usable = argument.storage.contents[start : start + (len(argument.storage.contents) - start) // size * size]
            found[name] = usable.view(np.dtype(f"i{size}")).tolist()
    return found


def executions(program: Program, facts: LaunchFacts) -> Iterator[tuple[Side, str, Tensor]]:
    """Some executions of every access of the launch, with the tensor they go through, where that is only one."""
    roots = pointer_roots(program)
    for pid in ((x, y, z) for z in range(facts.grid[2]) for y in range(facts.grid[1]) for x in range(facts.grid[0])):
        try:
            events = run_program(program, facts, pid)
        except Unreplayable:
            continue
        for event in events:
            names = roots[event.index] or frozenset()
            tensor = facts.arguments.get(next(iter(names))) if len(names) == 1 else None
            if not isinstance(tensor, Tensor):
                continue
            active = np.argwhere(np.broadcast_to(event.active, event.addresses.shape))
            for lane in active[:: max(1, len(active) // 3)]:
                at = tuple(int(n) for n in lane)
                address = int(event.addresses[at])
                yield Side(event.access, pid, at, event.iterations, address), next(iter(names)), tensor


def formulas_that_hold(program: Program, facts: LaunchFacts) -> tuple[int, int]:
    """How many executions there are, and of how many a formula was printed, after each part of it was evaluated."""
    formulas = Formulas(program, facts)
    tried = printed = 0
    for side, name, tensor in executions(program, facts):
        tried += 1
        term = formulas.term(side, name, tensor)
        if term is None:
            continue
        printed += 1
        assert side.address_bytes is not None
        wanted = (side.address_bytes - tensor.address) // tensor.element_bytes
        for width in (WHOLE, 40):
            told = chain(term, width=width)
            values = [eval(part, names_of(facts, side)) for part in told.split(" = ")] if told else []
            assert values == [wanted] * len(values), told
    return tried, printed


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_every_part_of_a_formula_is_the_element(entry: Entry) -> None:
    program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
    formulas_that_hold(program, facts)


def test_formulas_of_random_kernels(tmp_path: Path) -> None:
    kernels = [generate(seed) for seed in range(5000, 5040)]
    module = write_module(tmp_path / "random_kernels.py", kernels)
    tried = printed = 0
    for kernel in kernels:
        try:
            program, facts, _alive = prepared(kernel, module)
        except (CompileFailed, Refused):
            continue
        more = formulas_that_hold(program, facts)
        tried, printed = tried + more[0], printed + more[1]
    assert tried > 1000
    assert printed > 0.85 * tried


# What cannot be said: arithmetic that wraps, or rounds towards zero at a negative number; prefix sums; a loop that halves;
# the place of a largest element; how often an element occurs; a sum over all that a table holds; a tile that a loop carries
# into another layout.
UNSAID = {
    "best_of_tile",
    "best_of_tile_apart",
    "bins_as_places",
    "bins_as_places_apart",
    "byte_index_wraps",
    "division_truncates",
    "places_from_full_sum",
    "places_from_full_sum_overlapping",
    "prefix_of_counts",
    "prefix_of_flags",
    "product_wraps",
    "row_laid_along",
    "table_index_wraps",
    "tile_turned_each_round",
    "while_halving",
}


def test_most_addresses_of_the_corpus_have_a_formula() -> None:
    silent = set()
    for entry in ENTRIES:
        program, facts, _alive = launch(load(entry.path), entry.grid, entry.num_warps)
        formulas = Formulas(program, facts)
        if any(formulas.term(*execution) is None for execution in executions(program, facts)):
            silent.add(entry.name)
    assert silent == UNSAID


PID, LANE, N = (
    Name("pid", 2, Varies.PROGRAM),
    Name("lane", 5, Varies.LANE),
    Name("n", 7, Varies.LAUNCH),
)


def times(left: Any, right: Any) -> Any:
    return binary("*", left, right, left.value * right.value)


def plus(left: Any, right: Any) -> Any:
    return binary("+", left, right, left.value + right.value)


def test_what_changes_nothing_is_left_out() -> None:
    assert plus(Number(0), LANE) is LANE
    assert times(Number(1), LANE) is LANE
    assert times(LANE, Number(0)) == Number(0)
    assert printed(plus(plus(LANE, Number(3)), Number(4))) == "lane + 7"
    assert printed(plus(LANE, Number(-4))) == "lane - 4"


def test_brackets_keep_the_meaning() -> None:
    minus = Binary("-", PID, Binary("-", LANE, N, -2, Varies.LANE, 3), 4, Varies.LANE, 5)
    assert printed(minus) == "pid - (lane - n)"
    rest = binary("%", times(PID, N), times(LANE, N), 14 % 35)
    assert printed(rest) == "pid*n % (lane*n)"
    assert printed(times(rest, N)) == "(pid*n % (lane*n))*n"


def test_long_formulas_lose_what_varies_least_first() -> None:
    term = plus(times(plus(times(PID, times(N, N)), times(N, N)), N), LANE)
    assert chain(term, width=80) == "(pid*n*n + n*n)*n + lane = (2*7*7 + 7*7)*7 + 5 = 1034"
    assert chain(term, width=22) == "(pid*49 + 49)*n + lane = (2*49 + 49)*7 + 5 = 1034"
    assert chain(term, width=12) == "lane + 1029 = 5 + 1029 = 1034"
    assert chain(term, width=8) == ""


def test_an_element_is_shown_where_it_was_read_and_with_what_it_held() -> None:
    assert chain(element("index", plus(PID, LANE), 9), width=80) == "index[pid + lane] = index[7] = 9"
    both = plus(times(element("index", PID, 9), Number(4)), LANE)
    assert chain(both, width=80) == "index[pid]*4 + lane = index[2]*4 + 5 = 9*4 + 5 = 41"
