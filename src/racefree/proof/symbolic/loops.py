"""Folds loops into records over the number of their round: what runs in a round, what it carries, what holds at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from racefree.graph.program import Access, For, Int, Value, While, walk
from racefree.proof.symbolic.arithmetic import integer, limits
from racefree.proof.symbolic.cells import Around, Cell, Passed, guarded, width
from racefree.proof.symbolic.closed_forms import closed, drift, has_unknown
from racefree.proof.symbolic.needing import at, needed_before
from racefree.proof.symbolic.records import Await, Loop, Obligation
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.terms import (
    FALSE,
    TRUE,
    ZERO,
    Condition,
    Fn,
    Relation,
    Sum,
    Term,
    Unknown,
    Var,
    VarKind,
    add,
    apply,
    both,
    compare,
    conjunction,
    either,
    is_condition,
    multiply,
    negate,
    number,
    subtract,
    variable,
)
from racefree.proof.symbolic.variables import exit_of, round_of

if TYPE_CHECKING:
    from racefree.proof.symbolic.lowering import Lowering


def lower_for(w: Lowering, loop: For, around: Around) -> None:
    number_ = w.number()
    bounds = [w.get(v) for v in (loop.lower, loop.upper, loop.step)]
    obligations = frozenset().union(*(b.obligations for b in bounds))
    low, high, step = (integer(b.term) if b.term is not None else None for b in bounds)
    round_ = round_of(number_)
    index: Term | None = None
    runs: Condition = TRUE
    added: frozenset[Obligation] = frozenset()
    exact = False
    if low is not None and step is not None and w.bounder.positive(step):
        if high is not None:
            round_ = _narrowed(w, round_, low, high, step)
        start = add((low, multiply(variable(round_), step)))
        index = start
        readable = not loop.unsigned or (
            high is not None and w.bounder.never_negative(low) and w.bounder.never_negative(high)
        )
        if high is not None and readable:
            exact = True
            runs = compare(Relation.LT, start, high)
            added = _increment_fits(w, loop, start, step, high, runs)
    if runs == FALSE:  # a loop without rounds: its body is never reached
        for result, start_value in zip(loop.results, loop.inits, strict=True):
            w.env[result.index] = w.get(start_value)
        return
    inner = Around(
        both(around.path, runs),
        around.obligations | guarded(obligations | added, around.path),
        (*around.loops, Loop(number_, round_, runs, exact)),
        (*around.place, (number_, 0)),
    )
    if index is None:
        index = w.unknown(loop.induction, inner)
    w.env[loop.induction.index] = Cell(index, obligations)
    inits = [w.get(v) for v in loop.inits]
    _carry(
        w,
        loop.carried,
        inits,
        loop.yields,
        inner,
        lambda lowering, inside: lowering.body(loop.body, inside).behind(inside).path,
    )
    rounds = _rounds(low, high, step) if exact else None
    for result, init, cell in zip(loop.results, inits, _after(w, loop, inits, round_, rounds), strict=True):
        w.env[result.index] = cell if cell is not None else Cell(w.unknown(result, around), init.obligations)


def _increment_fits(w: Lowering, loop: For, start: Sum, step: Sum, high: Sum, runs: Condition) -> frozenset[Obligation]:
    """The index after a round that runs must not wrap, or the loop would go on."""
    bits = width(loop.induction.element)
    bottom, top = limits(bits)
    upper, most = w.bounder.of(high)[1], w.bounder.of(step)[1]
    if upper is not None and most is not None and upper - 1 + most <= top:
        return frozenset()
    return frozenset((Obligation(bits, add((start, step)), bottom, top, runs),))


def _narrowed(w: Lowering, round_: Var, low: Sum, high: Sum, step: Sum) -> Var:
    """The round variable with a bound, where the loop's bounds are constant."""
    rounds = _rounds(low, high, step)
    if rounds is None:
        return round_
    _, most = w.bounder.of(rounds)
    return round_ if most is None else replace(round_, high=max(most - 1, 0))


def _rounds(low: Sum | None, high: Sum | None, step: Sum | None) -> Sum | None:
    """How many rounds a loop makes."""
    if low is None or high is None or step is None or step.parts:
        return None
    span = add((subtract(high, low), number(step.constant - 1)))
    return apply(Fn.MAX, apply(Fn.FLOOR, span, step), ZERO)


def _carry(
    w: Lowering,
    carried: tuple[Value, ...],
    inits: list[Cell],
    yields: tuple[Value, ...],
    inner: Around,
    fold: Callable[[Lowering, Around], Condition],
) -> None:
    """Find closed forms, or bounds, by folding a round with placeholders; then fold it for good.

    `fold` tells when a round gets to where it computes the values of the next.
    """
    round_ = inner.loops[-1].iteration
    names = [_placeholder(value, f"carried{inner.loops[-1].number}:{n}") for n, value in enumerate(carried)]
    probe = w.copy()
    for value, name, init in zip(carried, names, inits, strict=True):
        probe.env[value.index] = Cell(None if init.term is None or is_condition(init.term) else variable(name))
    goes_on = fold(probe, inner)
    nexts = [probe.get(v) for v in yields]
    forms = closed(names, [i.term for i in inits], [n.term for n in nexts], round_)
    needs = needed_before(names, inits, nexts, forms, round_, [width(value.element) for value in carried])
    always: list[Condition] = []
    needed = inner.obligations
    for value, name, form, init, last in zip(carried, names, forms, inits, nexts, strict=True):
        if form is None:
            cell = w.env[value.index] = Cell(w.unknown(value, inner))
            bounds = drift(name, init.term, last.term, cell.term, w.bounder)
            if bounds:
                always += bounds
                here = {n: c.term for n, c in zip(names, map(w.get, carried), strict=True) if isinstance(c.term, Sum)}
                now = Replacer(here.get)
                needed |= guarded(init.obligations, inner.path)
                needed |= guarded(at(last.obligations, now), both(inner.path, now.condition(goes_on)))
            continue
        w.env[value.index] = Cell(form, needs[name] | _fits(w, value, form, inner.path))
    fold(w, replace(inner, path=conjunction((inner.path, *always)), obligations=needed))


def _placeholder(value: Value, name: str) -> Var:
    """What stands for a carried value while its closed form is looked for."""
    return Var(VarKind.CARRIED if any(extent > 1 for extent in value.shape) else VarKind.PARAMETER, name)


def _fits(w: Lowering, value: Value, form: Term, path: Condition) -> frozenset[Obligation]:
    """The closed form counts without wrapping, so it must fit the width in every round that runs."""
    bits = width(value.element)
    if not isinstance(value.element, Int) or bits == 1 or not isinstance(form, Sum):
        return frozenset()
    low, high = limits(bits)
    bottom, top = w.bounder.of(form)
    if bottom is not None and top is not None and low <= bottom and top <= high:
        return frozenset()
    return frozenset((Obligation(bits, form, low, high, path),))


def _after(w: Lowering, loop: For, inits: list[Cell], round_: Var, rounds: Sum | None) -> list[Cell | None]:
    """What the loop yields at its end: the carried value of the round that no longer runs."""
    out: list[Cell | None] = []
    for value, init in zip(loop.carried, inits, strict=True):
        cell = w.env[value.index]
        if cell.term is not None and cell.term == init.term:
            out.append(init)
        elif cell.term is None or rounds is None or not isinstance(cell.term, Sum) or has_unknown(cell.term):
            out.append(None)
        else:
            ending = Replacer({round_: rounds}.get)
            added = frozenset(o for o in cell.obligations if o not in init.obligations)
            term = ending.sum(cell.term)
            fits = _fits(w, value, term, TRUE)
            out.append(Cell(term, init.obligations | at(added, ending) | fits))
    return out


def lower_while(w: Lowering, loop: While, around: Around) -> Passed:
    """Folds the loop; what holds behind it, if it waits for an atomic: that its condition failed in some round."""
    number_ = w.number()
    round_ = round_of(number_)
    inner = Around(
        around.path,
        around.obligations,
        (*around.loops, Loop(number_, round_, TRUE, False)),
        (*around.place, (number_, 0)),
    )
    inits = [w.get(v) for v in loop.inits]
    probe = w.copy()
    _carry_while(probe, loop, around, inner, inits)
    going = probe.condition(loop.condition, inner)
    before = Replacer({round_: subtract(variable(round_), number(1))}.get).condition(going)
    reached = either(compare(Relation.EQ, variable(round_), ZERO), before)
    _carry_while(w, loop, around, replace(inner, path=both(around.path, reached)), inits)
    last = Replacer({round_: variable(exit_of(number_))}.get) if _waits(loop, going) else None
    for result, source in zip(loop.results, loop.forwarded, strict=True):
        cell = w.get(source)
        fixed = cell.term is not None and not any(
            leaf == round_ or not isinstance(leaf, Var) for leaf in leaves(cell.term)
        )
        if fixed:
            w.env[result.index] = cell
        elif last is not None and cell.term is not None and not around.loops:  # else it ends elsewhere in each round
            w.env[result.index] = Cell(last.term(cell.term), at(cell.obligations, last))
        else:
            w.env[result.index] = Cell(w.unknown(result, around))
    if last is None:
        return Passed()
    done = negate(last.condition(going))
    w.awaits.append(Await(number_, exit_of(number_), going, done, around.path, around.place))
    return Passed(done, guarded(at(w.get(loop.condition).obligations, last), around.path))


def _waits(loop: While, going: Condition) -> bool:
    """Whether the loop goes on depending on what one of its atomics finds."""
    inside = walk((*loop.before, *loop.after))
    found = {f"v{a.result.index}" for a in inside if isinstance(a, Access) and a.kind.atomic and a.result is not None}
    return any(isinstance(leaf, Unknown) and leaf.name in found for leaf in leaves(going))


def _carry_while(w: Lowering, loop: While, around: Around, inner: Around, inits: list[Cell]) -> None:
    number_ = inner.loops[-1].number

    def fold(lowering: Lowering, inside: Around) -> Condition:
        passed = lowering.body(loop.before, inside)
        after = lowering.under(passed.behind(inside), loop.condition, True, (number_, 1))
        after = replace(after, place=(*around.place, (number_, 1)))
        for value, source in zip(loop.after_args, loop.forwarded, strict=True):
            lowering.env[value.index] = lowering.get(source)
        return lowering.body(loop.after, after).behind(after).path

    _carry(w, loop.before_args, inits, loop.after_yields, inner, fold)
