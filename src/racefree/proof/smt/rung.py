"""Proofs for any grid: first for any parameters, then for this launch's, by asking for a race and finding there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod

from racefree.errors import Refusal
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program
from racefree.proof.memory_model import NOTHING_ADDED, memory_model
from racefree.proof.outcome import RungResult, Side, Witness
from racefree.proof.schedule.relevance import relevance
from racefree.proof.smt.additions import drawn_from
from racefree.proof.smt.asking import Asker
from racefree.proof.smt.contents import Contents
from racefree.proof.smt.digits import digits
from racefree.proof.smt.initial import initially
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
from racefree.proof.smt.solving import Answer, Model
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.lowering import Binding, lower
from racefree.proof.symbolic.questions import (
    Domain,
    Question,
    assertions,
    copier,
    in_grid,
    ordered_less,
    own,
    questions,
    violated,
)
from racefree.proof.symbolic.records import Reading, Record, constant
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.sync.counted import counted_tickets
from racefree.proof.symbolic.sync.order import Order, order
from racefree.proof.symbolic.sync.setting import MOST_DRAWN, Setting
from racefree.proof.symbolic.terms import (
    TRUE,
    Condition,
    FreeTruth,
    Read,
    Relation,
    Sum,
    Unknown,
    Var,
    both,
    compare,
    either,
    negate,
    number,
    variable,
)
from racefree.proof.symbolic.tickets import Count, Ticket, distinctness, drawn_in, happened, tickets
from racefree.proof.symbolic.variables import grid_size, program_id
from racefree.verdict import (
    ASSUMES_TERMINATION,
    ONE_THREAD_PER_LANE,
    READS_CONTENTS,
    REPLICAS_LOAD_FIRST,
    ProofScope,
    assumes_no_overflow,
)

MOST_FRAGILE = 1
NEARBY = 8
"""A proof for any grid is not claimed where an integer wraps on a grid this many times as large along each axis."""

RUNG = "smt"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One reading of a launch: with its parameters symbolic (T0), or bound (T1), with tensor contents where these help.

    `counted` are the tickets with what is known of where their counters begin; none where nothing is.
    """

    scope: ProofScope
    reading: Reading
    domain: Domain
    may_meet: set[tuple[int, int]]
    layout: Layout | None = None
    contents: Contents | None = None
    tickets: tuple[Ticket, ...] = ()
    counted: tuple[Ticket, ...] = ()
    order: Order | None = None
    names: tuple[Replacer, Replacer] = field(default_factory=lambda: (copier(1), copier(2)))


def strengthen(program: Program, facts: LaunchFacts, asker: Asker, *, strict_lanes: bool, decided: bool) -> RungResult:
    """A proof for any grid, if there is one within the budget; it covers this launch.

    Unless this launch is `decided` already, no integer may wrap at it whatever the contents that are not known.
    A result with status "passed" may carry races of other grids in `grid_fragile`.
    """
    if wraps_nearby(program, facts, asker, decided=decided):
        reason = "an integer wraps on a grid not much larger than this one"
        return RungResult(RUNG, "passed", refusal=Refusal("integer-overflow", reason))
    fragile: tuple[Witness, ...] = ()
    refusal = Refusal("potential-race", "no proof for any grid was found")
    for attempt in _attempts(program, facts, asker, strict_lanes=strict_lanes, decided=decided):
        whole = asker.budget
        if attempt.scope is ProofScope.ANY_PARAMS_ANY_GRID:
            asker.budget = whole.half()
        outcome = _try(program, facts, attempt, asker)
        if asker.budget is not whole:
            whole.settle(asker.budget)
            asker.budget = whole
        if outcome.status == "proved":
            return outcome
        fragile = outcome.grid_fragile or fragile
        refusal = outcome.refusal or refusal
    return RungResult(RUNG, "passed", refusal=refusal, grid_fragile=fragile)


# ---- readings --------------------------------------------------------------------------------------------------------


def _attempts(
    program: Program, facts: LaunchFacts, asker: Asker, *, strict_lanes: bool, decided: bool
) -> Iterator[Attempt]:
    unwritten = unwritten_loads(program, facts)
    layout = layout_of(facts)
    bound = _lowered(program, lambda p: bound_parameter(p, facts, layout), unwritten, facts)
    of_launch = {record.access.index: record for record in bound.records}

    def held(record: Record) -> int | None:
        found = of_launch.get(record.access.index)
        return None if found is None else initially(found, program, facts, layout)

    if tensors_apart(program, facts):
        reading = _lowered(program, any_parameter, unwritten, facts)
        pairs = meeting_pairs(program, facts, by_name=True)
        drawn = tickets(reading, pairs)
        domain = domain_of(reading, facts, {}, strict_lanes=strict_lanes)
        setting = _setting(reading, domain, pairs, drawn, facts, asker, held)
        yield Attempt(
            ProofScope.ANY_PARAMS_ANY_GRID, reading, domain, pairs, tickets=drawn, order=_order(setting, facts)
        )
    pairs = meeting_pairs(program, facts, by_name=False)
    drawn = tickets(bound, pairs)
    domain = domain_of(bound, facts, tensor_ranges(program, facts, layout), strict_lanes=strict_lanes)
    setting = replace(
        _setting(bound, domain, pairs, drawn, facts, asker, held),
        model=memory_model(facts.triton_version, facts.target),
        initial=held,
    )
    reads = any(isinstance(leaf, Read) for r in bound.records for leaf in leaves(r.address, r.mask, r.path))
    attempt = Attempt(
        ProofScope.THIS_PARAMS_ANY_GRID,
        bound,
        domain,
        pairs,
        layout,
        contents=Contents(facts, layout) if reads else None,
        tickets=drawn,
        counted=counted_tickets(setting),
        order=_order(setting, facts),
    )
    yield attempt
    # What atomics order may take too many interleavings even at this grid, and what they draw is in no footprint.
    if (attempt.order is not None or _places_are_drawn(attempt)) and not decided:
        here = replace(domain, pinned=dict(enumerate(facts.grid)))
        ordered = _order(replace(setting, domain=here), facts)
        counted = counted_tickets(
            replace(setting, domain=here), lambda series: drawn_from(series, program, facts, layout)
        )
        yield replace(attempt, scope=ProofScope.THIS_PARAMS_THIS_GRID, domain=here, order=ordered, counted=counted)


def _places_are_drawn(attempt: Attempt) -> bool:
    """Whether what atomics that only count find says where an access goes, or whether it happens."""
    found = tickets(attempt.reading, attempt.may_meet, lambda *_: Count(None, None))
    return drawn_in(found, (t for r in attempt.reading.records for t in (r.address, r.mask, r.path)))


def _lowered(program: Program, bind: Binding, unwritten: frozenset[int], facts: LaunchFacts) -> Reading:
    """The reading of a program. A barrier reaches one block: where a program has several, it orders nothing here."""
    reading = lower(program, bind, unwritten)
    return reading if facts.num_ctas == 1 else replace(reading, fences=())


def _setting(
    reading: Reading,
    domain: Domain,
    pairs: set[tuple[int, int]],
    drawn: tuple[Ticket, ...],
    facts: LaunchFacts,
    asker: Asker,
    held: Callable[[Record], int | None],
) -> Setting:
    """What the rules about synchronisation may use for any parameters: nothing a location holds before the launch."""
    programs = prod(NEARBY * extent for extent in facts.grid)
    never = partial(_never, asker)
    return Setting(reading, domain, pairs, NOTHING_ADDED, drawn, never, lambda _: None, held, programs)


def _order(setting: Setting, facts: LaunchFacts) -> Order | None:
    """The rules about synchronisation; none where a program has several blocks, which its barriers do not bring together."""
    return order(setting) if facts.num_ctas == 1 else None


def _never(asker: Asker, conditions: Sequence[Condition]) -> bool:
    return asker.never([c for c in conditions if c != TRUE], None)


def domain_of(
    reading: Reading, facts: LaunchFacts, ranges: dict[int, tuple[tuple[int, int], ...]], *, strict_lanes: bool
) -> Domain:
    axes = tuple(a for a in range(3) if a in reading.axes or facts.grid[a] > 1)
    pinned = {a: facts.grid[a] for a in range(3) if a not in reading.axes}
    threads = facts.num_warps * facts.warp_size * facts.num_ctas
    return Domain(axes, pinned, ranges, threads, strict_lanes, replicas_first=not strict_lanes)


# ---- asking ----------------------------------------------------------------------------------------------------------


def _try(program: Program, facts: LaunchFacts, attempt: Attempt, asker: Asker) -> RungResult:
    fragile: list[Witness] = []
    refusal: Refusal | None = None
    synchronises = bool(relevance(program).synchronising)
    asker.used_contents = False
    if attempt.order is not None and attempt.order.stuck():
        return _passed(Refusal("vacuous", "a loop waits for a value that no program ever writes"), [])
    for question in questions(attempt.reading, attempt.may_meet):
        answer, model = _asked(attempt, question, asker)
        if answer == "unsat":
            continue
        site = question.second.access.site
        if answer == "unknown":
            return _passed(Refusal("timeout", "the solver did not decide in its budget", site), fragile)
        refusal = refusal or Refusal("potential-race", "another launch in this scope may race", site)
        exact = model is not None and model.exact and _is_exact(question) and not synchronises
        if model is None or not exact or attempt.scope is not ProofScope.THIS_PARAMS_ANY_GRID:
            return _passed(refusal, fragile)
        fragile.append(_witness(model, question, facts, attempt.layout))
        if len(fragile) >= MOST_FRAGILE:
            break
    if refusal is not None:
        return _passed(refusal, fragile)
    qualifiers = _qualifiers(attempt, asker)
    return RungResult(asker.rung, "proved", scope=attempt.scope, qualifiers=qualifiers)


def _passed(refusal: Refusal, fragile: list[Witness]) -> RungResult:
    return RungResult(RUNG, "passed", refusal=refusal, grid_fragile=tuple(fragile))


def _asked(attempt: Attempt, question: Question, asker: Asker) -> tuple[Answer, Model | None]:
    """The question without what counters held before the launch, and if that does not suffice, with it."""
    answer, model = _asked_of(attempt, question, asker)
    terms = (t for r in (question.first, question.second) for t in (r.address, r.mask, r.path))
    if answer == "unsat" or not attempt.counted or not drawn_in(attempt.counted, terms):
        return answer, model
    again, _ = _asked_of(replace(attempt, tickets=attempt.counted), question, asker)
    if again != "unsat":
        return answer, model
    asker.used_contents = True
    return "unsat", None


def _asked_of(attempt: Attempt, question: Question, asker: Asker) -> tuple[Answer, Model | None]:
    """The question over digits where both sides can be rewritten, else as it stands."""
    over_digits = strided(attempt, question)
    if over_digits is not None and asker.never(over_digits, attempt.contents):
        return "unsat", None
    claims = assertions(attempt.reading, question, attempt.domain, attempt.names)
    if attempt.order is None or question.same_program:
        asked = [*claims, *distinctness(attempt.tickets, claims, attempt.domain)]
        return asker.ask(asked, attempt.contents, wants_model=_shows_races(attempt, question, asked))
    if asker.plainly(claims):
        return "unsat", None
    answer, model = _asked_in_order(attempt, question, attempt.order.unordered(question), claims, asker)
    if answer == "unsat" or not attempt.order.handed_on(question):
        return answer, model
    return _asked_in_order(attempt, question, attempt.order.unordered(question, far=True), claims, asker)


def _asked_in_order(
    attempt: Attempt, question: Question, unordered: list[Condition], claims: list[Condition], asker: Asker
) -> tuple[Answer, Model | None]:
    drawn = distinctness(attempt.tickets, [*claims, *unordered], attempt.domain)
    asked = [*claims, *unordered, *drawn]
    return asker.ask(
        asked, attempt.contents, branching=bool(unordered), wants_model=_shows_races(attempt, question, asked)
    )


def _shows_races(attempt: Attempt, question: Question, asked: Sequence[Condition]) -> bool:
    """Whether a model of what is asked would be a race of another grid, and so evidence worth having."""
    if attempt.scope is not ProofScope.THIS_PARAMS_ANY_GRID or not _is_exact(question):
        return False
    return not any(isinstance(leaf, Unknown | FreeTruth) for leaf in leaves(*asked))


def strided(attempt: Attempt, question: Question) -> list[Condition] | None:
    """The digits rewrite of a question, if both records allow the same one."""
    first, second = digits(question.first), digits(question.second)
    if first is None or second is None or (first.axis, first.loop) != (second.axis, second.loop):
        return None
    rewritten = Question(first.record, second.record, question.same_program)
    claims = assertions(
        attempt.reading, rewritten, attempt.domain, attempt.names, same=question.first is question.second
    )
    apart = compare(Relation.NE, own(first.number, 1), own(second.number, 2))
    if not question.same_program and attempt.domain.axes == (first.axis,):
        return [apart, *claims]
    if question.same_program:
        one = next(loop.iteration for loop in question.first.loops if loop.number == first.loop)
        other = next(loop.iteration for loop in question.second.loops if loop.number == second.loop)
        rounds = compare(Relation.NE, own(one, 1), own(other, 2))
        return [either(both(apart, rounds), both(negate(apart), negate(rounds))), *claims]
    return claims


def _is_exact(question: Question) -> bool:
    """Whether two accesses that meet are a race: dependence that is not followed here may order those of one program."""
    return not question.same_program and all(loop.exact for r in (question.first, question.second) for loop in r.loops)


def _qualifiers(attempt: Attempt, asker: Asker) -> tuple[str, ...]:
    widths = sorted({o.bits for r in attempt.reading.records for o in r.obligations})
    out = [assumes_no_overflow(bits) for bits in widths if _may_fail(attempt, bits, asker)]
    terms = [t for r in attempt.reading.records for t in (r.address, r.mask, r.path, *r.written) if t is not None]
    counted = {t.bits for t in (*attempt.tickets, *attempt.counted) if t.won is None and drawn_in((t,), terms)}
    counted |= attempt.order.widths if attempt.order is not None else frozenset()
    out += sorted({assumes_no_overflow(bits) for bits in counted} - set(out))
    if asker.used_contents or (attempt.order is not None and attempt.order.reads_contents):
        out.append(READS_CONTENTS)
    if not attempt.domain.strict_lanes and _rests_on(attempt, asker, replace(attempt.domain, strict_lanes=True)):
        out.append(ONE_THREAD_PER_LANE)
    if attempt.domain.replicas_first and _rests_on(attempt, asker, replace(attempt.domain, replicas_first=False)):
        out.append(REPLICAS_LOAD_FIRST)
    if _looks_again(attempt.reading):
        out.append(ASSUMES_TERMINATION)
    return tuple(out)


def _looks_again(reading: Reading) -> bool:
    """Whether an atomic stands in a loop whose rounds are not counted: it may go on for as long as it finds no other value."""
    polls = [r for r in reading.records if r.access.kind.atomic]
    return bool(reading.awaits) or any(not loop.exact for r in polls for loop in r.loops)


def _rests_on(attempt: Attempt, asker: Asker, weaker: Domain) -> bool:
    """True unless the proof also holds in a domain that assumes less about threads."""
    without = replace(attempt, domain=weaker)
    return any(
        _asked(without, question, asker)[0] != "unsat"
        for question in questions(attempt.reading, attempt.may_meet)
        if question.same_program and ordered_less(question, attempt.domain, weaker)
    )


def _may_fail(attempt: Attempt, bits: int, asker: Asker) -> bool:
    """Whether some integer of this width may wrap somewhere in the proof's domain; true when that cannot be told."""
    each = {o for r in attempt.reading.records for o in r.obligations if o.bits == bits}
    domain = attempt.domain
    return not all(asker.never([violated(o), *in_grid(domain, 1)], attempt.contents) for o in sorted(each, key=hash))


def wraps_nearby(program: Program, facts: LaunchFacts, asker: Asker, *, decided: bool) -> bool:
    """Whether some integer may wrap at this launch's parameters on a grid at most `NEARBY` times as large along each axis.

    True when that cannot be told. Where it is false, the proofs' unbounded integers are what this launch computes. If the
    launch is `decided`, wrapping for the sake of contents that are not known is left to the proof's qualifier, as is always
    that of a counter that is only counted.
    """
    layout = layout_of(facts)
    reading = lower(program, lambda p: bound_parameter(p, facts, layout), unwritten_loads(program, facts))
    domain = domain_of(reading, facts, {}, strict_lanes=True)
    contents = Contents(facts, layout)
    near = contents.replacer(lambda v: _nearby(v, facts, NEARBY))
    bounder = Bounder()
    drawn = tickets(reading, meeting_pairs(program, facts, by_name=False))
    counters = {t.name: t for t in drawn if t.won is None}
    for obligation in sorted({o for r in reading.records for o in r.obligations}, key=hash):
        low, high = bounder.of(near.sum(obligation.value))
        if low is not None and high is not None and obligation.low <= low and high <= obligation.high:
            continue
        claims = [violated(obligation), *in_grid(domain, 1)]
        claims += [compare(Relation.LE, variable(grid_size(a)), number(NEARBY * facts.grid[a])) for a in domain.axes]
        claims += _counted_from(counters, claims, lambda record: initially(record, program, facts, layout))
        answer, model = asker.ask(claims, contents, wants_model=True)
        if answer == "unknown" or (model is not None and (model.exact or not decided)):
            return True
    return False


def _counted_from(
    counters: Mapping[str, Ticket], conditions: Sequence[Condition], initial: Callable[[Record], int | None]
) -> list[Condition]:
    """On which side of what its counter held before the launch each number lies that was drawn in some conditions.

    Nothing is said of a counter that a launch might count past the end of its integers.
    """
    out = []
    for leaf in sorted({leaf for leaf in leaves(*conditions) if isinstance(leaf, Unknown)}, key=hash):
        name, _, copy = leaf.name.partition("@")
        ticket = counters.get(name) if copy else None
        before = None if ticket is None else initial(ticket.record)
        step = None if ticket is None else constant(ticket.record, 0)
        if ticket is not None and before is not None and step and abs(before) + abs(step) * MOST_DRAWN < 1 << 31:
            drawn, held = Sum(0, ((leaf, 1),)), number(before)
            counted = compare(Relation.LE, *((held, drawn) if step > 0 else (drawn, held)))
            out.append(either(negate(happened(ticket, int(copy), leaf)), counted))
    return out


def _nearby(var: Var, facts: LaunchFacts, times: int) -> Sum | None:
    for axis in range(3):
        if var == program_id(axis):
            return variable(replace(var, name=f"{var.name}near", high=times * facts.grid[axis] - 1))
        if var == grid_size(axis):
            return variable(replace(var, name=f"{var.name}near", high=times * facts.grid[axis]))
    return None


def _witness(model: Model, question: Question, facts: LaunchFacts, layout: Layout | None) -> Witness:
    sides = []
    for copy, record in ((1, question.first), (2, question.second)):
        program = tuple(model.value(own(program_id(axis), copy)) for axis in range(3))
        lane = tuple(0 if v is None else model.value(own(v, copy)) for v in record.lanes)
        rounds = tuple(model.value(own(loop.iteration, copy)) for loop in record.loops)
        address = model.value(copier(copy).sum(record.address))
        if layout is not None:
            address = layout.real(address, held_storages(facts))
        sides.append(Side(record.access, (program[0], program[1], program[2]), lane, rounds, address))
    return Witness(sides[0], sides[1], "another grid of the same kernel races")
