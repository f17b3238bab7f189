"""Loops of a kernel at one launch: folded into an axis, stepped one iteration at a time, or run any number of times."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from racefree.graph.program import For, Int, Value, While
from racefree.proof.footprint import closed_form, epochs
from racefree.proof.footprint.arith import add, mul
from racefree.proof.footprint.logic import compare, conjunction, number_of, select
from racefree.proof.footprint.tiles import splat
from racefree.proof.footprint.values import (
    Affine,
    Dense,
    Number,
    Truth,
    Unknown,
    Val,
    aligned,
    cells_of,
    constant,
    densify,
    is_empty,
    is_full,
    nowhere,
)

if TYPE_CHECKING:
    from racefree.proof.footprint.evaluate import Evaluation


@dataclass(frozen=True, slots=True)
class Turn:
    """One enclosing loop of an access: which loop, and the axis it was folded into, or (axis None) the step that was taken."""

    loop: int
    axis: int | None
    step: int = 0


def run_for(state: Evaluation, loop: For) -> None:
    bounds = [state.number(v) for v in (loop.lower, loop.upper, loop.step)]
    if any(isinstance(b, Unknown) for b in bounds):
        _unknown_for(state, loop, next(b for b in bounds if isinstance(b, Unknown)))
        return
    trips = closed_form.trip_count(loop, bounds, state.frame, cells_of(state.path_over(0).may, state.frame, ()))
    if isinstance(trips, Unknown):
        _unknown_for(state, loop, trips)
        return
    extent = _largest(state, trips)
    if extent == 0:
        for result, init in zip(loop.results, loop.inits, strict=True):
            if result.index in state.slice.values:
                state.bind(result, state.get(init))
        return
    state.loop_extents[id(loop)] = max(extent, state.loop_extents.get(id(loop), 0))
    plan = None
    if extent > state.stepped.get(id(loop), 1):
        plan = closed_form.plan(loop, state)
    if plan is None:
        _step(state, loop, bounds, trips, extent)
    else:
        _fold(state, loop, bounds, trips, extent, plan)


def _largest(state: Evaluation, trips: Affine | Dense) -> int:
    cells = densify(trips, state.frame, ())
    live = cells_of(state.path_over(0).may, state.frame, ())
    counts = np.where(live, cells.data, 0)
    return max(0, int(counts.max(initial=0)))


def _fold(
    state: Evaluation, loop: For, bounds: list[Number], trips: Affine | Dense, extent: int, plan: closed_form.Plan
) -> None:
    outer_frame, outer_path, outer_epoch = state.frame, state.path, state.aligned_epoch()
    outer_fold_path = state.fold_path
    depth = len(outer_frame.loops)
    state.frame = replace(outer_frame, loops=(*outer_frame.loops, extent))
    state.nest = (*state.nest, Turn(id(loop), depth))
    index = Affine(np.zeros(1, np.int64), (0,) * depth + (1,))
    here = [aligned(b, 0, depth + 1) for b in (*bounds, trips)]
    lower, _, step, count = (n for n in here if not isinstance(n, Truth))
    running = compare("slt", index, count, 64, state.frame, ())
    state.path = conjunction(state.path_over(0), running, state.frame, ())
    state.fold_path = state.path
    bits = loop.induction.element.bits if isinstance(loop.induction.element, Int) else 64
    state.bind(loop.induction, add(lower, mul(index, step, bits, state.frame, ()), bits, state.frame, ()))
    for position, growth in plan.growth.items():
        state.bind(loop.carried[position], _grown(state, loop, position, growth, index))
    why = Unknown("iterations of a loop pass different numbers of barriers", loop.site)
    state.epoch = epochs.advanced(state.aligned_epoch(), plan.rate, index, state.frame, why)
    state.block(loop.body)
    state.frame, state.path, state.nest = outer_frame, outer_path, state.nest[:-1]
    state.fold_path = outer_fold_path
    state.epoch = epochs.advanced(outer_epoch, plan.rate, _turns(state, loop, trips, plan.rate), state.frame, why)
    for position, growth in plan.growth.items():
        if loop.results[position].index in state.slice.values:
            state.bind(loop.results[position], _grown(state, loop, position, growth, trips))


def _turns(state: Evaluation, loop: For, trips: Number, rate: epochs.Rate) -> Number:
    """How many iterations each row runs, for the barriers they pass: none where the loop is not reached."""
    path = state.path_over(0)
    if rate == epochs.Rate(0, 0) or (path.exact and is_full(path.may)):
        return trips
    if not path.exact:
        return Unknown("a loop with barriers runs under a condition that is not known", loop.site)
    return mul(trips, number_of(path, 1, state.frame, ()), 64, state.frame, ())


def _grown(state: Evaluation, loop: For, position: int, growth: Number | None, times: Number) -> Val:
    """The carried value after `times` iterations: init + times * growth, at its width."""
    value = loop.carried[position]
    init = state.get(loop.inits[position])
    if growth is None:
        return init
    assert not isinstance(init, Truth)
    bits = value.element.bits if isinstance(value.element, Int) else 64
    tile_axes, loops = len(value.shape), len(state.frame.loops)
    step = aligned(growth, tile_axes, loops)
    count = splat(times, tile_axes)
    assert not isinstance(step, Truth)
    assert not isinstance(count, Truth)
    return add(init, mul(count, step, bits, state.frame, value.shape), bits, state.frame, value.shape)


def _step(state: Evaluation, loop: For, bounds: list[Number], trips: Affine | Dense, extent: int) -> None:
    needed = state.slice.values
    used = [i for i, (c, r) in enumerate(zip(loop.carried, loop.results, strict=True)) if {c.index, r.index} & needed]
    current = {i: state.get(loop.inits[i]) for i in used}
    outer_path = state.path_over(0)
    bits = loop.induction.element.bits if isinstance(loop.induction.element, Int) else 64
    axes = len(state.frame.loops)
    for step in range(extent):
        at = constant(step, axes)
        running = compare("slt", at, trips, 64, state.frame, ())
        state.path = conjunction(outer_path, running, state.frame, ())
        if is_empty(state.path.may):
            break
        offset = mul(at, bounds[2], bits, state.frame, ())
        state.bind(loop.induction, add(bounds[0], offset, bits, state.frame, ()))
        for i in used:
            state.bind(loop.carried[i], current[i])
        state.nest = (*state.nest, Turn(id(loop), None, step))
        state.block(loop.body)
        state.nest = state.nest[:-1]
        for i in used:
            shape = loop.carried[i].shape
            current[i] = select(
                state.widen(running, len(shape)), state.get(loop.yields[i]), current[i], state.frame, shape
            )
    state.path = outer_path
    for i in used:
        state.bind(loop.results[i], current[i])


def _unknown_for(state: Evaluation, loop: For, why: Unknown) -> None:
    """Bounds are not known: the body may run any number of times, with carried values that are not known."""
    state.bind(loop.induction, Unknown(f"the loop's bounds are not known: {why.reason}", why.site))
    _any_times(state, loop, list(loop.carried), list(loop.inits), list(loop.yields), why)
    outer = state.path
    state.path = Truth(state.path_over(0).may, nowhere(len(state.frame.loops)), why)
    saved, state.repeats = state.repeats, True
    state.nest = (*state.nest, Turn(id(loop), None, -1))
    state.block(loop.body)
    state.nest = state.nest[:-1]
    state.path, state.repeats = outer, saved
    _finish_unknown(state, list(loop.results), list(loop.carried))


def _any_times(
    state: Evaluation, loop: For | While, carried: list[Value], inits: list[Value], yields: list[Value], why: Unknown
) -> None:
    for value, init, last in zip(carried, inits, yields, strict=True):
        if last.index == value.index and init.index in state.env:
            state.bind(value, state.get(init))
        else:
            state.bind(value, state.unknown_value(value, Unknown(f"a loop changes it: {why.reason}", loop.site)))


def _finish_unknown(state: Evaluation, results: list[Value], carried: list[Value]) -> None:
    for result, value in zip(results, carried, strict=True):
        if result.index in state.slice.values:
            state.bind(result, state.get(value))


def run_while(state: Evaluation, loop: While) -> None:
    needed = state.slice.values
    used = [i for i, v in enumerate(loop.before_args) if v.index in needed]
    current: dict[int, Val] = {i: state.get(loop.inits[i]) for i in used}
    outer_path = state.path_over(0)
    running = outer_path
    last: dict[int, Val] = {}
    step = 0
    while True:
        state._count(loop)
        state.path = running
        for i in used:
            state.bind(loop.before_args[i], current[i])
        state.nest = (*state.nest, Turn(id(loop), None, step))
        state.block(loop.before)
        condition = state.truth(loop.condition)
        forwarded = {i: state.get(v) for i, v in enumerate(loop.forwarded) if _forward_needed(state, loop, i)}
        for i, value in forwarded.items():
            shape = loop.results[i].shape
            wide = state.widen(running, len(shape))
            last[i] = select(wide, value, last[i], state.frame, shape) if i in last else value
        going = conjunction(running, condition, state.frame, ())
        if not going.exact:
            state.nest = state.nest[:-1]
            _unknown_while(state, loop, going, condition)
            state.path = outer_path
            return
        state.path = going
        if is_empty(going.may):
            state.nest = state.nest[:-1]
            break
        for i, value in forwarded.items():
            state.bind(loop.after_args[i], value)
        state.block(loop.after)
        state.nest = state.nest[:-1]
        for i in used:
            shape = loop.before_args[i].shape
            current[i] = select(
                state.widen(going, len(shape)), state.get(loop.after_yields[i]), current[i], state.frame, shape
            )
        running = going
        step += 1
    state.path = outer_path
    for i, value in last.items():
        if loop.results[i].index in needed:
            state.bind(loop.results[i], value)


def _forward_needed(state: Evaluation, loop: While, position: int) -> bool:
    return bool({loop.results[position].index, loop.after_args[position].index} & state.slice.values)


def _unknown_while(state: Evaluation, loop: While, going: Truth, condition: Truth) -> None:
    """The condition is not known: assume the loop ends, and let both bodies run any number of times."""
    why = condition.why or Unknown("the loop's condition is not known", loop.site)
    state.assumes_termination = True
    _any_times(state, loop, list(loop.before_args), list(loop.inits), list(loop.after_yields), why)
    state.path = Truth(going.may, nowhere(len(state.frame.loops)), why)
    saved, state.repeats = state.repeats, True
    state.nest = (*state.nest, Turn(id(loop), None, -1))
    for body in (loop.before, loop.after):
        state.block(body)
        if body is loop.before:
            for i, source in enumerate(loop.forwarded):
                if _forward_needed(state, loop, i):
                    state.bind(loop.after_args[i], state.get(source))
    state.nest = state.nest[:-1]
    state.repeats = saved
    for result in loop.results:
        if result.index in state.slice.values:
            state.bind(result, state.unknown_value(result, Unknown(f"a loop changes it: {why.reason}", loop.site)))
