"""Proofs for any grid: first for any parameters, then for this launch's, by asking for a race and finding there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import z3

from racefree.errors import Refusal
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program
from racefree.proof.outcome import RungResult, Side, Witness
from racefree.proof.schedule.relevance import relevance
from racefree.proof.smt.budget import Budget
from racefree.proof.smt.contents import Contents
from racefree.proof.smt.digits import digits
from racefree.proof.smt.encoding import Encoding
from racefree.proof.smt.launch import (
    Layout,
    any_parameter,
    bound_parameter,
    held_storages,
    layout_of,
    meeting_pairs,
    tensor_ranges,
    tensors_apart,
    unwritten_loads,
)
from racefree.proof.smt.queries import Domain, Question, assertions, in_grid, questions, violated
from racefree.proof.smt.solving import ask
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.lowering import grid_size, lower, program_id
from racefree.proof.symbolic.records import Reading
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.terms import Read, Sum, Var, variable
from racefree.verdict import ONE_THREAD_PER_LANE, READS_CONTENTS, ProofScope, assumes_no_overflow

NEARBY = 8
"""A proof for any grid is not claimed where an integer wraps on a grid this many times as large along each axis."""

RUNG = "smt"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One reading of a launch: with its parameters symbolic (T0), bound (T1), or bound and with tensor contents."""

    scope: ProofScope
    reading: Reading
    domain: Domain
    may_meet: set[tuple[int, int]]
    layout: Layout | None = None
    contents: Contents | None = None


def strengthen(program: Program, facts: LaunchFacts, budget: Budget, *, strict_lanes: bool) -> RungResult:
    """A proof for any grid, if there is one within the budget; it covers this launch, where no integer wraps.

    A result with status "passed" may carry races of other grids in `grid_fragile`.
    """
    if wraps_nearby(program, facts, budget):
        reason = "an integer wraps on a grid not much larger than this one"
        return RungResult(RUNG, "passed", refusal=Refusal("integer-overflow", reason))
    fragile: tuple[Witness, ...] = ()
    refusal = Refusal("potential-race", "no proof for any grid was found")
    for attempt in _attempts(program, facts, strict_lanes=strict_lanes):
        outcome = _try(program, facts, attempt, budget)
        if outcome.status == "proved":
            return outcome
        fragile = outcome.grid_fragile or fragile
        refusal = outcome.refusal or refusal
    return RungResult(RUNG, "passed", refusal=refusal, grid_fragile=fragile)


# ---- readings --------------------------------------------------------------------------------------------------------


def _attempts(program: Program, facts: LaunchFacts, *, strict_lanes: bool) -> Iterator[Attempt]:
    threads = None if strict_lanes else facts.num_warps * facts.warp_size
    unwritten = unwritten_loads(program, facts)
    if tensors_apart(program, facts):
        reading = lower(program, any_parameter, unwritten)
        pairs = meeting_pairs(program, facts, by_name=True)
        yield Attempt(ProofScope.ANY_PARAMS_ANY_GRID, reading, domain_of(reading, facts, {}, threads), pairs)
    layout = layout_of(facts)
    reading = lower(program, lambda p: bound_parameter(p, facts, layout), unwritten)
    domain = domain_of(reading, facts, tensor_ranges(program, facts, layout), threads)
    pairs = meeting_pairs(program, facts, by_name=False)
    yield Attempt(ProofScope.THIS_PARAMS_ANY_GRID, reading, domain, pairs, layout)
    if any(isinstance(leaf, Read) for r in reading.records for leaf in leaves(r.address, r.mask, r.path)):
        yield Attempt(ProofScope.THIS_PARAMS_ANY_GRID, reading, domain, pairs, layout, Contents(facts, layout))


def domain_of(
    reading: Reading, facts: LaunchFacts, ranges: dict[int, tuple[tuple[int, int], ...]], threads: int | None
) -> Domain:
    axes = tuple(a for a in range(3) if a in reading.axes or facts.grid[a] > 1)
    pinned = {a: facts.grid[a] for a in range(3) if a not in reading.axes}
    return Domain(axes, pinned, ranges, threads)


# ---- asking ----------------------------------------------------------------------------------------------------------


def _try(program: Program, facts: LaunchFacts, attempt: Attempt, budget: Budget) -> RungResult:
    fragile: list[Witness] = []
    undecided: Refusal | None = None
    synchronises = bool(relevance(program).synchronising)
    for question in questions(attempt.reading, attempt.may_meet):
        encoding = Encoding(attempt.contents)
        claims = assertions(encoding, attempt.reading, question, attempt.domain)
        answer, model = ask(encoding, claims, budget)
        if answer == "unsat":
            continue
        if answer == "unknown":
            if strided_apart(attempt, question, budget):
                continue
            site = question.second.access.site
            return RungResult(
                RUNG, "passed", refusal=Refusal("timeout", "the solver did not decide in its budget", site)
            )
        undecided = Refusal("potential-race", "another launch in this scope may race", question.second.access.site)
        exact = not encoding.inexact and _is_exact(question) and not synchronises
        if attempt.scope is ProofScope.THIS_PARAMS_ANY_GRID and exact:
            fragile.append(_witness(encoding, model, question, facts, attempt.layout))
        else:
            return RungResult(RUNG, "passed", refusal=undecided)
        if len(fragile) >= 3:
            break
    if fragile or undecided:
        return RungResult(RUNG, "passed", refusal=undecided, grid_fragile=tuple(fragile))
    return RungResult(RUNG, "proved", scope=attempt.scope, qualifiers=_qualifiers(attempt, budget))


def strided_apart(attempt: Attempt, question: Question, budget: Budget) -> bool:
    """Whether the digits rewrite, on both sides, shows that the question's race does not exist."""
    first, second = digits(question.first), digits(question.second)
    if first is None or second is None or (first.axis, first.loop) != (second.axis, second.loop):
        return False
    encoding = Encoding(attempt.contents)
    rewritten = Question(first.record, second.record, question.same_program)
    claims = assertions(encoding, attempt.reading, rewritten, attempt.domain, same=question.first is question.second)
    apart = encoding.variable(first.number, 1) != encoding.variable(second.number, 2)
    if not question.same_program and attempt.domain.axes == (first.axis,):
        claims.append(apart)
    elif question.same_program and any(loop.number == first.loop for loop in question.first.loops):
        first_round = next(loop.iteration for loop in question.first.loops if loop.number == first.loop)
        second_round = next(loop.iteration for loop in question.second.loops if loop.number == second.loop)
        rounds_equal = encoding.variable(first_round, 1) == encoding.variable(second_round, 2)
        claims.append(apart == z3.Not(rounds_equal))
    return ask(encoding, claims, budget)[0] == "unsat"


def _is_exact(question: Question) -> bool:
    return all(loop.exact for r in (question.first, question.second) for loop in r.loops)


def _qualifiers(attempt: Attempt, budget: Budget) -> tuple[str, ...]:
    widths = sorted({o.bits for r in attempt.reading.records for o in r.obligations})
    out = [assumes_no_overflow(bits) for bits in widths if _may_fail(attempt, bits, budget)]
    if attempt.domain.threads is not None and _uses_owner_rule(attempt):
        out.append(ONE_THREAD_PER_LANE)
    if attempt.contents is not None:
        out.append(READS_CONTENTS)
    return tuple(out)


def _uses_owner_rule(attempt: Attempt) -> bool:
    """True when some tensor has two accesses, or one in a loop, that the rule may have kept apart."""
    records = {r.access.index: r for r in attempt.reading.records}
    for a, b in attempt.may_meet:
        first, second = records.get(a), records.get(b)
        if first is None or second is None or first.access.shape != second.access.shape or first.access.shape == ():
            continue
        if not (first.access.kind.writes or second.access.kind.writes):
            continue
        if (a != b and a not in second.depends and b not in first.depends) or first.loops or second.loops:
            return True
    return False


def _may_fail(attempt: Attempt, bits: int, budget: Budget) -> bool:
    """Whether some integer of this width may wrap somewhere in the proof's domain; true when that cannot be told."""
    each = {o for r in attempt.reading.records for o in r.obligations if o.bits == bits}
    for obligation in sorted(each, key=hash):
        encoding = Encoding(attempt.contents)
        claim = [violated(encoding, obligation, 1), *in_grid(encoding, attempt.domain, 1)]
        answer, _ = ask(encoding, claim, budget)
        if answer != "unsat":
            return True
    return False


def wraps_nearby(program: Program, facts: LaunchFacts, budget: Budget, *, times: int = NEARBY) -> bool:
    """Whether some integer may wrap at this launch's parameters on a grid at most `times` as large along each axis.

    True when that cannot be told. Where it is false, the proofs' unbounded integers are what this launch computes.
    """
    layout = layout_of(facts)
    reading = lower(program, lambda p: bound_parameter(p, facts, layout), unwritten_loads(program, facts))
    domain = domain_of(reading, facts, {}, None)
    near = Replacer(lambda v: _nearby(v, facts, times))
    bounder = Bounder()
    for obligation in sorted({o for r in reading.records for o in r.obligations}, key=hash):
        low, high = bounder.of(near.sum(obligation.value))
        if low is not None and high is not None and obligation.low <= low and high <= obligation.high:
            continue
        encoding = Encoding(Contents(facts, layout))
        claim = [violated(encoding, obligation, 1), *in_grid(encoding, domain, 1)]
        claim += [encoding.variable(grid_size(a), 1) <= times * facts.grid[a] for a in domain.axes]
        if ask(encoding, claim, budget)[0] != "unsat":
            return True
    return False


def _nearby(var: Var, facts: LaunchFacts, times: int) -> Sum | None:
    for axis in range(3):
        if var == program_id(axis):
            return variable(replace(var, name=f"{var.name}near", high=times * facts.grid[axis] - 1))
        if var == grid_size(axis):
            return variable(replace(var, name=f"{var.name}near", high=times * facts.grid[axis]))
    return None


def _witness(encoding: Encoding, model: Any, question: Question, facts: LaunchFacts, layout: Layout | None) -> Witness:
    sides = []
    for copy, record in ((1, question.first), (2, question.second)):

        def value(var: Var, copy: int = copy) -> int:
            return int(model.eval(encoding.variable(var, copy), model_completion=True).as_long())

        program = tuple(value(program_id(axis)) for axis in range(3))
        lane = tuple(0 if v is None else value(v) for v in record.lanes)
        rounds = tuple(value(loop.iteration) for loop in record.loops)
        address = int(model.eval(encoding.sum(record.address, copy), model_completion=True).as_long())
        if layout is not None:
            address = layout.real(address, held_storages(facts))
        sides.append(Side(record.access, (program[0], program[1], program[2]), lane, rounds, address))
    return Witness(sides[0], sides[1], "another grid of the same kernel races")
