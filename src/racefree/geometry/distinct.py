"""Decides whether two patterns share a byte at different values of the indices they have in common.

Two accesses of one launch have the program ids in common: with these folded in as dims, one question asks about every pair of
different programs. Each case of "the first index that differs, and which side is ahead" is an equation of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from racefree.access import Pattern
from racefree.geometry.decide import DEFAULT_BUDGET, solve
from racefree.geometry.equation import UNKNOWN, Equation, Unknown, is_empty
from racefree.geometry.overlap import Witness, shared_byte

SPLIT_LIMIT = 64
"""Parts one case may be split into when its triangle of unequal indices is no box; the rest is unknown."""


def distinct_overlap_witness(
    a: Pattern, b: Pattern, *, shared: Sequence[tuple[int, int]], budget: int = DEFAULT_BUDGET
) -> Witness | Unknown | None:
    """A shared byte at which some shared index differs, None when there is none, UNKNOWN when undecided.

    `shared` pairs a dim of `a` with the dim of `b` for the same index (by position); the other dims are free. Raises
    ValueError when the dims of a pair have different counts or a dim is used twice.
    """
    _check(a, b, shared)
    if is_empty(a) or is_empty(b):
        return None
    # Large steps first: then most cases fail on range alone.
    order = sorted(shared, key=lambda pair: (-abs(a.dims[pair[0]].step_bytes), pair))
    undecided = False
    for position, (i, j) in enumerate(order):
        for a_ahead in (True, False):
            case = _Case(a, b, tuple(order[:position]), i, j, a_ahead, budget)
            found = case.decide(0, a.dims[i].count)
            if isinstance(found, Witness):
                return found
            undecided |= found is UNKNOWN
    return UNKNOWN if undecided else None


def _check(a: Pattern, b: Pattern, shared: Sequence[tuple[int, int]]) -> None:
    for i, j in shared:
        if a.dims[i].count != b.dims[j].count:
            raise ValueError(f"dims {i} and {j} are one index, but have counts {a.dims[i].count} and {b.dims[j].count}")
    if len({i for i, _ in shared}) < len(shared) or len({j for _, j in shared}) < len(shared):
        raise ValueError(f"a dim appears twice in {list(shared)}")


@dataclass(slots=True)
class _Form:
    """Variables with their ranges, and which of them add up to each index of each side."""

    a: Pattern
    b: Pattern
    ranges: list[tuple[int, int]] = field(default_factory=list)
    reads_a: dict[int, tuple[int, ...]] = field(default_factory=dict)
    reads_b: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def variable(self, low: int, past: int) -> int:
        """A new variable with values `low` to `past` - 1."""
        self.ranges.append((low, past - 1))
        return len(self.ranges) - 1

    def solve(self, budget: int) -> tuple[tuple[int, ...], tuple[int, ...]] | Unknown | None:
        """Indices of both sides that share a byte, with ranges as given, of which none is empty."""
        steps = [0] * len(self.ranges)
        for i, variables in self.reads_a.items():
            for variable in variables:
                steps[variable] += self.a.dims[i].step_bytes
        for j, variables in self.reads_b.items():
            for variable in variables:
                steps[variable] -= self.b.dims[j].step_bytes
        target = self.b.base_bytes - self.a.base_bytes + self.b.elem_bytes - 1
        target -= sum(step * low for step, (low, _) in zip(steps, self.ranges, strict=True))
        terms = [(step, high - low) for step, (low, high) in zip(steps, self.ranges, strict=True)]
        inner = (1, self.a.elem_bytes + self.b.elem_bytes - 2)
        solution = solve(Equation((*terms, inner), target), budget)
        if solution is None or solution is UNKNOWN:
            return solution
        values = [low + z for z, (low, _) in zip(solution[:-1], self.ranges, strict=True)]
        at_a = tuple(sum(values[v] for v in self.reads_a[i]) for i in range(len(self.a.dims)))
        at_b = tuple(sum(values[v] for v in self.reads_b[j]) for j in range(len(self.b.dims)))
        return at_a, at_b


@dataclass(slots=True)
class _Case:
    """The shared indices of `equal` agree, and dim `i` of `a` is ahead of, or behind, dim `j` of `b`."""

    a: Pattern
    b: Pattern
    equal: tuple[tuple[int, int], ...]
    i: int
    j: int
    a_ahead: bool
    budget: int
    parts: int = 0

    def decide(self, low: int, past: int) -> Witness | Unknown | None:
        """The case with both differing indices in [low, past).

        The index behind and the distance are first taken as independent. That can only add solutions, so none means none;
        where the solution found is one of those added, the range is halved: indices in different halves are independent.
        """
        if past - low < 2:
            return None
        self.parts += 1
        if self.parts > SPLIT_LIMIT:
            return UNKNOWN
        form = self._form()
        behind, distance = form.variable(low, past - 1), form.variable(1, past - low)
        ahead = (behind, distance)
        form.reads_a[self.i], form.reads_b[self.j] = (ahead, (behind,)) if self.a_ahead else ((behind,), ahead)
        found = form.solve(self.budget)
        if found is None or found is UNKNOWN:
            return found
        if max(found[0][self.i], found[1][self.j]) < past:
            return shared_byte(self.a, found[0], self.b, found[1])
        return self._halves(low, past)

    def _halves(self, low: int, past: int) -> Witness | Unknown | None:
        middle = (low + past) // 2
        form = self._form()
        upper, lower = form.variable(middle, past), form.variable(low, middle)
        form.reads_a[self.i], form.reads_b[self.j] = ((upper,), (lower,)) if self.a_ahead else ((lower,), (upper,))
        across = form.solve(self.budget)
        if across is not None and across is not UNKNOWN:
            return shared_byte(self.a, across[0], self.b, across[1])
        undecided = across is UNKNOWN
        for half in ((low, middle), (middle, past)):
            found = self.decide(*half)
            if isinstance(found, Witness):
                return found
            undecided |= found is UNKNOWN
        return UNKNOWN if undecided else None

    def _form(self) -> _Form:
        form = _Form(self.a, self.b)
        for i, j in self.equal:
            both = (form.variable(0, self.a.dims[i].count),)
            form.reads_a[i] = form.reads_b[j] = both
        for i, dim in enumerate(self.a.dims):
            if i not in form.reads_a and i != self.i:
                form.reads_a[i] = (form.variable(0, dim.count),)
        for j, dim in enumerate(self.b.dims):
            if j not in form.reads_b and j != self.j:
                form.reads_b[j] = (form.variable(0, dim.count),)
        return form
