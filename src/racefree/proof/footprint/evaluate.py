"""Walks one kernel for a chunk of program instances at once and collects the footprint of every relevant access."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import assert_never

import numpy as np

from racefree.access import Kind
from racefree.errors import Refused
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import (
    Access,
    Assume,
    Barrier,
    Data,
    For,
    Guard,
    If,
    Int,
    Op,
    Program,
    Ptr,
    Statement,
    Value,
    While,
    children,
    walk,
)
from racefree.proof.footprint import closed_form, epochs
from racefree.proof.footprint.arith import add, mul
from racefree.proof.footprint.epochs import Epoch
from racefree.proof.footprint.logic import compare, conjunction, full_truth, negate, number_of, select, truth_of
from racefree.proof.footprint.memory import AddressSpace, scalar_part
from racefree.proof.footprint.ops import HANDLERS, Context
from racefree.proof.footprint.slicing import Slice
from racefree.proof.footprint.values import (
    I64,
    Affine,
    Box,
    Cells,
    Dense,
    Frame,
    Number,
    Region,
    Truth,
    Unknown,
    Val,
    align_cells,
    align_coefs,
    align_region,
    cells_of,
    constant,
    densify,
    is_empty,
    is_full,
    known,
    maybe,
    nowhere,
)

STATEMENT_BUDGET = 400_000
"""Statements evaluated for one launch before loops that must be stepped are given up."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One enclosing loop of an access: which loop, and the axis it was folded into, or (axis None) the step that was taken."""

    loop: int
    axis: int | None
    step: int = 0


@dataclass(frozen=True, slots=True)
class Footprint:
    """Where one access of the kernel goes, for every row of a chunk, at one state of the stepped loops.

    `nest` holds a turn per enclosing loop, outermost first. `epoch` counts the barriers passed before. `repeats` marks an
    access that may run any number of times.
    """

    access: Access
    address: Affine | Dense
    where: Truth
    epoch: Epoch
    loops: tuple[int, ...]
    nest: tuple[Turn, ...]
    repeats: bool


class Evaluation:
    """One pass over the kernel for the program instances in `pids` (three arrays of the chunk's rows)."""

    def __init__(
        self,
        program: Program,
        facts: LaunchFacts,
        space: AddressSpace,
        slice_: Slice,
        pids: tuple[I64, I64, I64],
        *,
        cell_limit: int,
        stepped: frozenset[int],
        written: frozenset[int],
    ) -> None:
        self.program, self.facts, self.space, self.slice = program, facts, space, slice_
        self.frame = Frame(pids[0].size, (), cell_limit)
        self.context = Context(pids, facts.grid, space)
        self.env: dict[int, tuple[Val, int]] = {}
        self.path: Truth = full_truth(0, holds=True)
        self.epoch = epochs.start(0)
        self.fold_path: Truth | None = None
        self.footprints: list[Footprint] = []
        self.nest: tuple[Turn, ...] = ()
        self.repeats = False
        self.stepped, self.written = stepped, written
        self.reads_contents = False
        self.read_clusters: set[int] = set()
        self.assumes_termination = False
        self.notes: set[str] = set()
        self.work = 0
        self.loop_extents: dict[int, int] = {}
        self._matters: dict[int, bool] = {}

    def run(self) -> list[Footprint]:
        for position, parameter in enumerate(self.program.parameters):
            self.bind(parameter.value, self._argument(position))
        self.block(self.program.body)
        return self.footprints

    def _argument(self, position: int) -> Val:
        parameter = self.program.parameters[position]
        value = parameter.value
        if isinstance(value.element, Ptr):
            tensor = self.space.tensors.get(position)
            if tensor is None:
                return Unknown("the pointer argument is not a tensor", self.program.site)
            at = self.space.virtual(tensor.address, self.space.cluster_of(tensor.storage))
            return constant(at, 0)
        if not isinstance(value.element, Int) or value.index not in self.slice.values:
            return Unknown("it is no integer", self.program.site)
        number = scalar_part(parameter, self.facts, self.program.site)
        if number is None:
            return Unknown("it is a floating-point argument", self.program.site)
        if value.element.bits == 1:
            return full_truth(0, holds=bool(number))
        half = 1 << (value.element.bits - 1)
        return constant((number + half) % (2 * half) - half, 0)

    # ---- environment -------------------------------------------------------------------------------------------------

    def bind(self, value: Value, what: Val) -> None:
        self.env[value.index] = (what, len(self.frame.loops))

    def get(self, value: Value) -> Val:
        """The value, seen from the loops now in scope."""
        found = self.env.get(value.index)
        if found is None:
            raise AssertionError(f"value {value.index} is used but was not evaluated")
        what, depth = found
        loops = len(self.frame.loops)
        return what if depth == loops else aligned(what, len(value.shape), loops)

    def number(self, value: Value) -> Number:
        what = self.get(value)
        if isinstance(what, Truth):
            return number_of(what, 1, self.frame, value.shape)
        return what

    def truth(self, value: Value) -> Truth:
        what = self.get(value)
        return what if isinstance(what, Truth) else truth_of(what, self.frame, value.shape)

    # ---- statements --------------------------------------------------------------------------------------------------

    def block(self, body: tuple[Statement, ...]) -> None:
        for statement in body:
            self.statement(statement)

    def _count(self, statement: Statement) -> None:
        self.work += 1
        if self.work > STATEMENT_BUDGET:
            raise Refused("loop-budget", "a loop that cannot be folded runs too often to be stepped", statement.site)

    def statement(self, statement: Statement) -> None:
        self._count(statement)
        match statement:
            case Op():
                self._reduction(statement)
                if any(r.index in self.slice.values for r in statement.results):
                    self._op(statement)
            case Data():
                self._reduction(statement)
                for result in statement.results:
                    if result.index in self.slice.values:
                        self.bind(
                            result, self._unknown(result, Unknown(f"it comes from {statement.name}", statement.site))
                        )
            case Access():
                self._access(statement)
            case Barrier():
                self._barrier(statement)
            case Assume():
                pass
            case Guard() | If() | For() | While():
                if self.matters(statement):
                    self._nested(statement)
                elif any(epochs.is_block_reduction(s, self.facts) for s in walk((statement,))):
                    why = Unknown("a reduction runs in a part that was not evaluated", statement.site)
                    self.epoch = epochs.lost(self.epoch, why, barrier=False)
            case _:
                assert_never(statement)

    def _nested(self, statement: Guard | If | For | While) -> None:
        match statement:
            case Guard():
                self._under(self.truth(statement.condition), statement.body)
            case If():
                self._if(statement)
            case For():
                self._for(statement)
            case While():
                self._while(statement)
            case _:
                assert_never(statement)

    def matters(self, statement: Statement) -> bool:
        """True when a statement contains a relevant access, a barrier, or computes a value the slice needs."""
        cached = self._matters.get(id(statement))
        if cached is None:
            cached = self._compute_matters(statement)
            self._matters[id(statement)] = cached
        return cached

    def _compute_matters(self, statement: Statement) -> bool:
        needed = self.slice.values
        match statement:
            case Op() | Data():
                return any(r.index in needed for r in statement.results)
            case Access():
                return statement.index in self.slice.relevant or (
                    statement.result is not None and statement.result.index in needed
                )
            case Barrier():
                return epochs.is_barrier(statement)
            case Assume():
                return False
            case If() | For() | While():
                if any(r.index in needed for r in statement.results):
                    return True
            case Guard():
                pass
            case _:
                assert_never(statement)
        return any(self.matters(s) for body in children(statement) for s in body)

    def _unknown(self, value: Value, why: Unknown) -> Val:
        return maybe(len(self.frame.loops) + len(value.shape), why) if value.element == Int(1) else why

    def _op(self, op: Op) -> None:
        handler = HANDLERS.get(op.name)
        if handler is None:
            why = Unknown(f"it comes from {op.name}, which is not computed here", op.site)
            for result in op.results:
                self.bind(result, self._unknown(result, why))
            return
        results = handler(op, [self.get(o) for o in op.operands], self.context, self.frame)
        for result, what in zip(op.results, results, strict=True):
            if isinstance(what, Unknown):
                what = self._unknown(result, what)
            self.bind(result, what)

    def _barrier(self, barrier: Barrier) -> None:
        if epochs.is_barrier(barrier):
            self._pass(barrier, barrier=True)

    def _reduction(self, statement: Op | Data) -> None:
        if epochs.is_block_reduction(statement, self.facts):
            self._pass(statement, barrier=False)

    def _pass(self, statement: Statement, *, barrier: bool) -> None:
        if not self.path.exact:
            why = Unknown("a barrier runs under a condition that is not known", statement.site)
            self.epoch = epochs.lost(self.epoch, why, barrier=barrier)
            return
        # Every iteration of a folded loop passes the barriers of its body; rows and iterations outside it do not count.
        whole = self.path is self.fold_path
        passed = constant(1, len(self.frame.loops)) if whole else number_of(self.path, 1, self.frame, ())
        self.epoch = epochs.passed(self._aligned_epoch(), passed, self.frame, barrier=barrier)

    def _aligned_epoch(self) -> Epoch:
        counts = [aligned(c, 0, len(self.frame.loops)) for c in (self.epoch.barriers, self.epoch.syncs)]
        barriers, syncs = (c for c in counts if not isinstance(c, Truth))
        return Epoch(barriers, syncs)

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def _access(self, access: Access) -> None:
        relevant = access.index in self.slice.relevant
        feeds = access.result is not None and access.result.index in self.slice.values
        if not (relevant or feeds):
            return
        where = self._path_over(len(access.shape))
        if access.mask is not None:
            where = conjunction(where, self.truth(access.mask), self.frame, access.shape)
        address = self.get(access.pointer)
        assert not isinstance(address, Truth)
        if relevant and not is_empty(where.may):
            if isinstance(address, Unknown):
                raise Refused("indirect-address", f"the address is not known: {address.reason}", address.site)
            known_address = self._restrict(address, where, access)
            self.footprints.append(
                Footprint(
                    access, known_address, where, self._aligned_epoch(), self.frame.loops, self.nest, self.repeats
                )
            )
        if feeds:
            assert access.result is not None
            self.bind(access.result, self._read(access, address, where))

    def _restrict(self, address: Affine | Dense, where: Truth, access: Access) -> Affine | Dense:
        """Refuse an address that is unknown in a lane that may be active."""
        if isinstance(address, Affine) or address.known is None:
            return address
        active = cells_of(where.may, self.frame, access.shape)
        if (active & ~address.known).any():
            raise Refused("indirect-address", "the address of an active lane is not known", access.site)
        return Dense(address.data)

    def _path_over(self, tile_axes: int) -> Truth:
        def stretch(region: Region) -> Region:
            if isinstance(region, Box):
                return Box(region.rows, region.bounds + (None,) * tile_axes)
            return Cells(region.data.reshape(region.data.shape + (1,) * tile_axes))

        path = aligned(self.path, 0, len(self.frame.loops))
        assert isinstance(path, Truth)
        may = stretch(path.may)
        return Truth(may, may if path.exact else stretch(path.must), path.why)

    def _read(self, access: Access, address: Number, where: Truth) -> Val:
        result = access.result
        assert result is not None
        if access.kind is not Kind.LOAD:
            return self._unknown(result, Unknown("it is what an atomic observed", access.site))
        if not isinstance(result.element, Int | Ptr):
            return Unknown("it is loaded floating-point data", access.site)
        if isinstance(address, Unknown):
            return self._unknown(
                result, Unknown(f"it is loaded from an unknown address: {address.reason}", access.site)
            )
        cells = densify(address, self.frame, access.shape)
        active = cells_of(where.must, self.frame, access.shape)
        shape = np.broadcast_shapes(cells.data.shape, active.shape)
        at, live = np.broadcast_to(cells.data, shape), np.broadcast_to(active, shape)
        if cells.known is not None:
            live = live & cells.known
        homes = np.unique(self.space.home(at[live]))
        if any(int(h) in self.written for h in homes):
            why = Unknown("it is loaded from a tensor that this launch writes", access.site)
            return self._unknown(result, why)
        data, sure, reason = self.space.read(at, access.element_bytes, live)
        if live.any() and not sure[live].any():
            return self._unknown(result, Unknown(f"it is loaded and not known: {reason}", access.site))
        self.reads_contents = True
        self.read_clusters |= {int(h) for h in homes}
        if isinstance(result.element, Ptr):
            data = self.space.from_integer(data)
        value = self._with_other(access, Dense(data, None if sure.all() else sure), where)
        return truth_of(value, self.frame, result.shape) if result.element == Int(1) else value

    def _with_other(self, access: Access, loaded: Dense, where: Truth) -> Dense | Unknown:
        """Lanes that are surely masked off hold `other`, where there is one."""
        if access.other is None or access.mask is None:
            return loaded
        other = self.number(access.other)
        mask = self.truth(access.mask)
        if isinstance(other, Unknown) or is_full(mask.must):
            return loaded
        cells = densify(other, self.frame, access.shape)
        off = ~cells_of(mask.may, self.frame, access.shape)
        known_there = np.ones((), np.bool_) if loaded.known is None else loaded.known
        other_known = np.ones((), np.bool_) if cells.known is None else cells.known
        sure = np.where(off, other_known, known_there)
        data = np.where(off, cells.data, loaded.data)
        return Dense(data, None if sure.all() else np.broadcast_to(sure, data.shape))

    # ---- branches ----------------------------------------------------------------------------------------------------

    def _under(self, condition: Truth, body: tuple[Statement, ...]) -> None:
        outer = self.path
        self.path = conjunction(self._path_over(0), condition, self.frame, ())
        if not is_empty(self.path.may):
            self.block(body)
        else:
            self._skip(body)
        self.path = outer

    def _skip(self, body: tuple[Statement, ...]) -> None:
        """Bind what a body that runs for no row would define: nobody reads it where it matters."""
        for statement in body:
            results = getattr(statement, "results", None)
            if results is None:
                result = getattr(statement, "result", None)
                results = () if result is None else (result,)
            for result in results:
                if result.index in self.slice.values:
                    why = Unknown("it is computed on a path that no program takes", statement.site)
                    self.bind(result, self._unknown(result, why))
            if isinstance(statement, Guard):
                self._skip(statement.body)

    def _if(self, branch: If) -> None:
        condition = self.truth(branch.condition)
        self._under(condition, branch.then_body)
        taken = [self._maybe_get(v) for v in branch.then_yields]
        self._under(negate(condition, self.frame, ()), branch.else_body)
        for result, left, right in zip(branch.results, taken, branch.else_yields, strict=True):
            if result.index not in self.slice.values:
                continue
            other = self._maybe_get(right)
            assert left is not None
            assert other is not None
            wide = self._widen(condition, len(result.shape))
            self.bind(result, select(wide, left, other, self.frame, result.shape))

    def _maybe_get(self, value: Value) -> Val | None:
        return self.get(value) if value.index in self.env else None

    def _widen(self, condition: Truth, tile_axes: int) -> Truth:
        saved, self.path = self.path, condition
        out = self._path_over(tile_axes)
        self.path = saved
        return out

    # ---- loops -------------------------------------------------------------------------------------------------------

    def _for(self, loop: For) -> None:
        bounds = [self.number(v) for v in (loop.lower, loop.upper, loop.step)]
        if any(isinstance(b, Unknown) for b in bounds):
            self._unknown_for(loop, next(b for b in bounds if isinstance(b, Unknown)))
            return
        trips = closed_form.trip_count(loop, bounds, self.frame, cells_of(self._path_over(0).may, self.frame, ()))
        if isinstance(trips, Unknown):
            self._unknown_for(loop, trips)
            return
        extent = self._largest(trips)
        if extent == 0:
            for result, init in zip(loop.results, loop.inits, strict=True):
                if result.index in self.slice.values:
                    self.bind(result, self.get(init))
            return
        self.loop_extents[id(loop)] = max(extent, self.loop_extents.get(id(loop), 0))
        plan = None
        if extent > 1 and id(loop) not in self.stepped:
            plan = closed_form.plan(loop, self)
        if plan is None:
            self._step_for(loop, bounds, trips, extent)
        else:
            self._fold_for(loop, bounds, trips, extent, plan)

    def _largest(self, trips: Affine | Dense) -> int:
        cells = densify(trips, self.frame, ())
        live = cells_of(self._path_over(0).may, self.frame, ())
        counts = np.where(live, cells.data, 0)
        return max(0, int(counts.max(initial=0)))

    def _fold_for(
        self, loop: For, bounds: list[Number], trips: Affine | Dense, extent: int, plan: closed_form.Plan
    ) -> None:
        outer_frame, outer_path, outer_epoch = self.frame, self.path, self._aligned_epoch()
        outer_fold_path = self.fold_path
        depth = len(outer_frame.loops)
        self.frame = replace(outer_frame, loops=(*outer_frame.loops, extent))
        self.nest = (*self.nest, Turn(id(loop), depth))
        index = Affine(np.zeros(1, np.int64), (0,) * depth + (1,))
        here = [aligned(b, 0, depth + 1) for b in (*bounds, trips)]
        lower, _, step, count = (n for n in here if not isinstance(n, Truth))
        running = compare("slt", index, count, 64, self.frame, ())
        self.path = conjunction(self._path_over(0), running, self.frame, ())
        self.fold_path = self.path
        bits = loop.induction.element.bits if isinstance(loop.induction.element, Int) else 64
        self.bind(loop.induction, add(lower, mul(index, step, bits, self.frame, ()), bits, self.frame, ()))
        for position, growth in plan.growth.items():
            self.bind(loop.carried[position], self._grown(loop, position, growth, index))
        why = Unknown("iterations of a loop pass different numbers of barriers", loop.site)
        self.epoch = epochs.advanced(self._aligned_epoch(), plan.rate, index, self.frame, why)
        self.block(loop.body)
        self.frame, self.path, self.nest = outer_frame, outer_path, self.nest[:-1]
        self.fold_path = outer_fold_path
        self.epoch = epochs.advanced(outer_epoch, plan.rate, self._turns(loop, trips, plan.rate), self.frame, why)
        for position, growth in plan.growth.items():
            if loop.results[position].index in self.slice.values:
                self.bind(loop.results[position], self._grown(loop, position, growth, trips))

    def _turns(self, loop: For, trips: Number, rate: epochs.Rate) -> Number:
        """How many iterations each row runs, for the barriers they pass: none where the loop is not reached."""
        path = self._path_over(0)
        if rate == epochs.Rate(0, 0) or (path.exact and is_full(path.may)):
            return trips
        if not path.exact:
            return Unknown("a loop with barriers runs under a condition that is not known", loop.site)
        return mul(trips, number_of(path, 1, self.frame, ()), 64, self.frame, ())

    def _grown(self, loop: For, position: int, growth: Number | None, times: Number) -> Val:
        """The carried value after `times` iterations: init + times * growth, at its width."""
        value = loop.carried[position]
        init = self.get(loop.inits[position])
        if growth is None:
            return init
        assert not isinstance(init, Truth)
        bits = value.element.bits if isinstance(value.element, Int) else 64
        tile_axes, loops = len(value.shape), len(self.frame.loops)
        step = aligned(growth, tile_axes, loops)
        count = spread(times, tile_axes)
        assert not isinstance(step, Truth)
        return add(init, mul(count, step, bits, self.frame, value.shape), bits, self.frame, value.shape)

    def _step_for(self, loop: For, bounds: list[Number], trips: Affine | Dense, extent: int) -> None:
        needed = self.slice.values
        used = [
            i for i, (c, r) in enumerate(zip(loop.carried, loop.results, strict=True)) if {c.index, r.index} & needed
        ]
        current = {i: self.get(loop.inits[i]) for i in used}
        outer_path = self._path_over(0)
        bits = loop.induction.element.bits if isinstance(loop.induction.element, Int) else 64
        axes = len(self.frame.loops)
        for step in range(extent):
            at = constant(step, axes)
            running = compare("slt", at, trips, 64, self.frame, ())
            self.path = conjunction(outer_path, running, self.frame, ())
            if is_empty(self.path.may):
                break
            offset = mul(at, bounds[2], bits, self.frame, ())
            self.bind(loop.induction, add(bounds[0], offset, bits, self.frame, ()))
            for i in used:
                self.bind(loop.carried[i], current[i])
            self.nest = (*self.nest, Turn(id(loop), None, step))
            self.block(loop.body)
            self.nest = self.nest[:-1]
            for i in used:
                shape = loop.carried[i].shape
                current[i] = select(
                    self._widen(running, len(shape)), self.get(loop.yields[i]), current[i], self.frame, shape
                )
        self.path = outer_path
        for i in used:
            self.bind(loop.results[i], current[i])

    def _unknown_for(self, loop: For, why: Unknown) -> None:
        """Bounds are not known: the body may run any number of times, with carried values that are not known."""
        self.bind(loop.induction, Unknown(f"the loop's bounds are not known: {why.reason}", why.site))
        self._any_times(loop, list(loop.carried), list(loop.inits), list(loop.yields), why)
        outer = self.path
        self.path = Truth(self._path_over(0).may, nowhere(len(self.frame.loops)), why)
        saved, self.repeats = self.repeats, True
        self.nest = (*self.nest, Turn(id(loop), None, -1))
        self.block(loop.body)
        self.nest = self.nest[:-1]
        self.path, self.repeats = outer, saved
        self._finish_unknown(list(loop.results), list(loop.carried))

    def _any_times(
        self, loop: For | While, carried: list[Value], inits: list[Value], yields: list[Value], why: Unknown
    ) -> None:
        for value, init, last in zip(carried, inits, yields, strict=True):
            if last.index == value.index and init.index in self.env:
                self.bind(value, self.get(init))
            else:
                self.bind(value, self._unknown(value, Unknown(f"a loop changes it: {why.reason}", loop.site)))

    def _finish_unknown(self, results: list[Value], carried: list[Value]) -> None:
        for result, value in zip(results, carried, strict=True):
            if result.index in self.slice.values:
                self.bind(result, self.get(value))

    def _while(self, loop: While) -> None:
        needed = self.slice.values
        used = [i for i, v in enumerate(loop.before_args) if v.index in needed]
        current: dict[int, Val] = {i: self.get(loop.inits[i]) for i in used}
        outer_path = self._path_over(0)
        running = outer_path
        last: dict[int, Val] = {}
        step = 0
        while True:
            self._count(loop)
            self.path = running
            for i in used:
                self.bind(loop.before_args[i], current[i])
            self.nest = (*self.nest, Turn(id(loop), None, step))
            self.block(loop.before)
            condition = self.truth(loop.condition)
            forwarded = {i: self.get(v) for i, v in enumerate(loop.forwarded) if self._forward_needed(loop, i)}
            for i, value in forwarded.items():
                shape = loop.results[i].shape
                wide = self._widen(running, len(shape))
                last[i] = select(wide, value, last[i], self.frame, shape) if i in last else value
            going = conjunction(running, condition, self.frame, ())
            if not going.exact:
                self.nest = self.nest[:-1]
                self._unknown_while(loop, going, condition)
                self.path = outer_path
                return
            self.path = going
            if is_empty(going.may):
                self.nest = self.nest[:-1]
                break
            for i, value in forwarded.items():
                self.bind(loop.after_args[i], value)
            self.block(loop.after)
            self.nest = self.nest[:-1]
            for i in used:
                shape = loop.before_args[i].shape
                current[i] = select(
                    self._widen(going, len(shape)), self.get(loop.after_yields[i]), current[i], self.frame, shape
                )
            running = going
            step += 1
        self.path = outer_path
        for i, value in last.items():
            if loop.results[i].index in needed:
                self.bind(loop.results[i], value)

    def _forward_needed(self, loop: While, position: int) -> bool:
        return bool({loop.results[position].index, loop.after_args[position].index} & self.slice.values)

    def _unknown_while(self, loop: While, going: Truth, condition: Truth) -> None:
        """The condition is not known: assume the loop ends, and let both bodies run any number of times."""
        why = condition.why or Unknown("the loop's condition is not known", loop.site)
        self.assumes_termination = True
        self._any_times(loop, list(loop.before_args), list(loop.inits), list(loop.after_yields), why)
        self.path = Truth(going.may, nowhere(len(self.frame.loops)), why)
        saved, self.repeats = self.repeats, True
        self.nest = (*self.nest, Turn(id(loop), None, -1))
        for body in (loop.before, loop.after):
            self.block(body)
            if body is loop.before:
                for i, source in enumerate(loop.forwarded):
                    if self._forward_needed(loop, i):
                        self.bind(loop.after_args[i], self.get(source))
        self.nest = self.nest[:-1]
        self.repeats = saved
        for result in loop.results:
            if result.index in self.slice.values:
                self.bind(result, self._unknown(result, Unknown(f"a loop changes it: {why.reason}", loop.site)))


def aligned(what: Val, tile_axes: int, loops: int) -> Val:
    """The same value with axes for the loops entered since it was made."""
    match what:
        case Affine():
            return Affine(what.base, align_coefs(what.coefs, tile_axes, loops))
        case Dense():
            sure = (
                None if what.known is None else align_cells(what.known, tile_axes, loops).astype(np.bool_, copy=False)
            )
            return Dense(align_cells(what.data, tile_axes, loops).astype(np.int64, copy=False), sure)
        case Unknown():
            return what
        case Truth():
            may = align_region(what.may, tile_axes, loops)
            return Truth(may, may if what.exact else align_region(what.must, tile_axes, loops), what.why)
        case _:
            assert_never(what)


def spread(scalar: Number, tile_axes: int) -> Number:
    """A scalar seen as a tile that does not depend on its lanes."""
    match scalar:
        case Affine():
            return Affine(scalar.base, scalar.coefs + (0,) * tile_axes)
        case Dense():
            ones = (1,) * tile_axes
            sure = None if scalar.known is None else scalar.known.reshape(scalar.known.shape + ones)
            return Dense(scalar.data.reshape(scalar.data.shape + ones), sure)
        case Unknown():
            return scalar
        case _:
            assert_never(scalar)


__all__ = ["Evaluation", "Footprint", "aligned", "known", "spread"]
