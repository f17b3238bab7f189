"""Proofs for any grid: first for any parameters, then for this launch's, by asking for a race and finding there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from racefree.errors import Refusal
from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Storage, Tensor
from racefree.graph.program import Float, Int, Parameter, Program, Ptr, accesses
from racefree.proof.outcome import RungResult, Side, Witness
from racefree.proof.replay.machine import argument_pattern
from racefree.proof.replay.memory import launch_memory, pointer_roots
from racefree.proof.smt.budget import Budget
from racefree.proof.smt.encoding import Encoding
from racefree.proof.smt.queries import Domain, Question, assertions, in_grid, questions, violated
from racefree.proof.smt.solving import ask
from racefree.proof.symbolic.arithmetic import limits
from racefree.proof.symbolic.lowering import lower, program_id
from racefree.proof.symbolic.records import Obligation, Reading, Record
from racefree.proof.symbolic.replacing import leaves
from racefree.proof.symbolic.terms import FALSE, TRUE, Term, Var, VarKind, number, variable
from racefree.verdict import ASSUMES_TERMINATION, ONE_THREAD_PER_LANE, ProofScope, assumes_no_overflow

RUNG = "smt"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One reading of a launch: with its parameters symbolic (T0) or bound (T1)."""

    scope: ProofScope
    reading: Reading
    domain: Domain
    may_meet: set[tuple[int, int]]


def strengthen(
    program: Program, facts: LaunchFacts, budget: Budget, *, strict_lanes: bool, decided: bool
) -> RungResult:
    """A proof for any grid, if there is one within the budget.

    `decided` says that this very launch is already proved, so that widths need not be shown to hold at it. A result with
    status "passed" may carry races of other grids in `grid_fragile`.
    """
    fragile: tuple[Witness, ...] = ()
    refusal = Refusal("potential-race", "no proof for any grid was found")
    for attempt in _attempts(program, facts, strict_lanes=strict_lanes):
        outcome = _try(program, facts, attempt, budget, decided=decided)
        if outcome.status == "proved":
            return outcome
        fragile = outcome.grid_fragile or fragile
        refusal = outcome.refusal or refusal
    return RungResult(RUNG, "passed", refusal=refusal, grid_fragile=fragile)


# ---- readings --------------------------------------------------------------------------------------------------------


def _attempts(program: Program, facts: LaunchFacts, *, strict_lanes: bool) -> Iterator[Attempt]:
    threads = None if strict_lanes else facts.num_warps * facts.warp_size
    unwritten = unwritten_loads(program, facts)
    if parameters_free(program, facts):
        reading = lower(program, any_parameter, unwritten)
        yield Attempt(
            ProofScope.ANY_PARAMS_ANY_GRID,
            reading,
            domain_of(reading, facts, {}, threads),
            meeting_pairs(program, facts, by_name=True),
        )
    reading = lower(program, lambda p: bound_parameter(p, facts.arguments.get(p.name)), unwritten)
    ranges = tensor_ranges(program, facts)
    yield Attempt(
        ProofScope.THIS_PARAMS_ANY_GRID,
        reading,
        domain_of(reading, facts, ranges, threads),
        meeting_pairs(program, facts, by_name=False),
    )


def any_parameter(parameter: Parameter) -> Term | None:
    """A parameter as a variable; a tensor's address is that of its own region, 0."""
    element = parameter.value.element
    if isinstance(element, Ptr):
        return number(0)
    if isinstance(element, Int) and element.bits > 1:
        low, high = limits(element.bits)
        return variable(Var(VarKind.PARAMETER, f"{parameter.name}{parameter.part}", low, high))
    return None


def bound_parameter(parameter: Parameter, argument: Argument | None) -> Term | None:
    """A parameter at its value in the launch (signed)."""
    element = parameter.value.element
    pattern = argument_pattern(parameter, argument)
    if isinstance(element, Float) or (pattern is None and not isinstance(element, Int)):
        return None
    if pattern is None:
        return None
    if isinstance(element, Int):
        if element.bits == 1:
            return TRUE if pattern else FALSE
        half = 1 << (element.bits - 1)
        return number((pattern + half) % (2 * half) - half)
    return number(pattern)


def domain_of(
    reading: Reading, facts: LaunchFacts, ranges: dict[int, tuple[tuple[int, int], ...]], threads: int | None
) -> Domain:
    axes = tuple(a for a in range(3) if a in reading.axes or facts.grid[a] > 1)
    pinned = {a: facts.grid[a] for a in range(3) if a not in reading.axes}
    return Domain(axes, pinned, ranges, threads)


def unwritten_loads(program: Program, facts: LaunchFacts) -> frozenset[int]:
    """The accesses (by index) whose tensors no access may write: what they read depends on the address alone."""
    quiet = {(s.address, s.nbytes) for s, changing in zip(*_memory(program, facts), strict=True) if changing is None}
    out = set()
    for index, names in pointer_roots(program).items():
        storages = [s for s in map(_storage, (facts.arguments.get(n) for n in names or ())) if s is not None]
        if names is not None and storages and all((s.address, s.nbytes) in quiet for s in storages):
            out.add(index)
    return frozenset(out)


def _memory(program: Program, facts: LaunchFacts) -> tuple[Any, Any]:
    memory = launch_memory(program, facts)
    return memory.storages, memory.changing


def _storage(argument: Argument | None) -> Storage | None:
    tensor = argument.base if isinstance(argument, Descriptor) else argument
    return tensor.storage if isinstance(tensor, Tensor) else None


def parameters_free(program: Program, facts: LaunchFacts) -> bool:
    """True when a proof per tensor stands for any launch whose tensors do not overlap, this one included."""
    spans = sorted(
        {(s.address, s.address + s.nbytes) for s in map(_storage, facts.arguments.values()) if s is not None}
    )
    named = [n for n, a in facts.arguments.items() if _storage(a) is not None]
    if len(spans) != len(named) or any(a[1] > b[0] for a, b in zip(spans, spans[1:], strict=False)):
        return False
    return all(names is not None and len(names) == 1 for names in pointer_roots(program).values())


def meeting_pairs(program: Program, facts: LaunchFacts, *, by_name: bool) -> set[tuple[int, int]]:
    """The pairs of accesses (by index) whose tensors may be the same, or may overlap."""
    roots = pointer_roots(program)
    indices = [a.index for a in accesses(program)]
    spans = {i: _spans(roots[i], facts) for i in indices}
    out = set()
    for n, a in enumerate(indices):
        for b in indices[n:]:
            if by_name:
                meets = roots[a] == roots[b]
            else:
                one, other = spans[a], spans[b]
                meets = one is None or other is None or any(x[0] < y[1] and y[0] < x[1] for x in one for y in other)
            if meets:
                out.add((a, b))
    return out


def _spans(names: frozenset[str] | None, facts: LaunchFacts) -> tuple[tuple[int, int], ...] | None:
    if names is None:
        return None
    storages = [s for s in map(_storage, (facts.arguments.get(n) for n in sorted(names))) if s is not None]
    return tuple((s.address, s.address + s.nbytes) for s in storages) or None


def tensor_ranges(program: Program, facts: LaunchFacts) -> dict[int, tuple[tuple[int, int], ...]]:
    """The byte ranges of the storages each access belongs to."""
    out = {}
    for index, names in pointer_roots(program).items():
        spans = _spans(names, facts)
        if spans is not None:
            out[index] = spans
    return out


# ---- asking ----------------------------------------------------------------------------------------------------------


def _try(program: Program, facts: LaunchFacts, attempt: Attempt, budget: Budget, *, decided: bool) -> RungResult:
    fragile: list[Witness] = []
    undecided: Refusal | None = None
    for question in questions(attempt.reading, attempt.may_meet):
        encoding = Encoding()
        answer, model = ask(encoding, assertions(encoding, attempt.reading, question, attempt.domain), budget)
        if answer == "unsat":
            continue
        if answer == "unknown":
            site = question.second.access.site
            return RungResult(
                RUNG, "passed", refusal=Refusal("timeout", "the solver did not decide in its budget", site)
            )
        undecided = Refusal("potential-race", "another launch in this scope may race", question.second.access.site)
        exact = not encoding.inexact and _is_exact(question)
        if attempt.scope is ProofScope.THIS_PARAMS_ANY_GRID and exact:
            fragile.append(_witness(encoding, model, question))
        else:
            return RungResult(RUNG, "passed", refusal=undecided)
        if len(fragile) >= 3:
            break
    if fragile or undecided:
        return RungResult(RUNG, "passed", refusal=undecided, grid_fragile=tuple(fragile))
    if not decided and not _holds_at_launch(facts, attempt, budget):
        return RungResult(RUNG, "passed", refusal=Refusal("integer-overflow", "an integer may wrap at this launch"))
    return RungResult(RUNG, "proved", scope=attempt.scope, qualifiers=_qualifiers(attempt, budget))


def _is_exact(question: Question) -> bool:
    return all(loop.exact for r in (question.first, question.second) for loop in r.loops)


def _qualifiers(attempt: Attempt, budget: Budget) -> tuple[str, ...]:
    widths = sorted({o.bits for r in attempt.reading.records for o in r.obligations})
    out = [assumes_no_overflow(bits) for bits in widths if _may_fail(attempt, bits, budget)]
    if attempt.reading.waits:
        out.append(ASSUMES_TERMINATION)
    if attempt.domain.threads is not None and _uses_owner_rule(attempt):
        out.append(ONE_THREAD_PER_LANE)
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
        encoding = Encoding()
        claim = [violated(encoding, obligation, 1), *in_grid(encoding, attempt.domain, 1)]
        answer, _ = ask(encoding, claim, budget)
        if answer != "unsat":
            return True
    return False


def _holds_at_launch(facts: LaunchFacts, attempt: Attempt, budget: Budget) -> bool:
    """Whether no integer wraps at this launch's grid and parameters."""
    pinned = {a: facts.grid[a] for a in range(3)}
    domain = Domain(attempt.domain.axes, pinned, {}, None)
    for record in attempt.reading.records:
        for obligation in record.obligations:
            encoding = Encoding()
            claim = [violated(encoding, obligation, 1), *in_grid(encoding, domain, 1)]
            claim += _parameters_at_launch(encoding, record, obligation, facts)
            if ask(encoding, claim, budget)[0] != "unsat":
                return False
    return True


def _parameters_at_launch(encoding: Encoding, record: Record, obligation: Obligation, facts: LaunchFacts) -> list[Any]:
    out = []
    for leaf in leaves(obligation.value, obligation.guard):
        if isinstance(leaf, Var) and leaf.kind is VarKind.PARAMETER:
            argument = facts.arguments.get(leaf.name)
            value = getattr(argument, "value", None)
            if isinstance(value, int):
                out.append(encoding.variable(leaf, 1) == int(value))
    return out


def _witness(encoding: Encoding, model: Any, question: Question) -> Witness:
    sides = []
    for copy, record in ((1, question.first), (2, question.second)):

        def value(var: Var, copy: int = copy) -> int:
            return int(model.eval(encoding.variable(var, copy), model_completion=True).as_long())

        program = tuple(value(program_id(axis)) for axis in range(3))
        lane = tuple(0 if v is None else value(v) for v in record.lanes)
        rounds = tuple(value(loop.iteration) for loop in record.loops)
        address = int(model.eval(encoding.sum(record.address, copy), model_completion=True).as_long())
        sides.append(Side(record.access, (program[0], program[1], program[2]), lane, rounds, address))
    return Witness(sides[0], sides[1], "another grid of the same kernel races")
