"""Walks one kernel for a chunk of program instances at once and collects the footprint of every relevant access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

import numpy as np

from racefree.access import Kind
from racefree.errors import Refusal, Refused
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
from racefree.proof.footprint import epochs, loops
from racefree.proof.footprint.epochs import Epoch
from racefree.proof.footprint.folds import apply
from racefree.proof.footprint.logic import conjunction, full_truth, negate, number_of, select, truth_of
from racefree.proof.footprint.loops import Turn
from racefree.proof.footprint.memory import AddressSpace, scalar_part
from racefree.proof.footprint.ops import Context
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
    aligned,
    by_row,
    cells_of,
    constant,
    densify,
    is_empty,
    is_full,
    maybe,
)

STATEMENT_BUDGET = 400_000
"""Statements evaluated for one launch before loops that must be stepped are given up."""


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
        stepped: Mapping[int, int],
        written: frozenset[int],
        early: frozenset[int] = frozenset(),
    ) -> None:
        self.program, self.facts, self.space, self.slice = program, facts, space, slice_
        self.frame = Frame(pids[0].size, (), cell_limit)
        self.context = Context(pids, facts.grid, space, slice_.from_addresses)
        self.env: dict[int, tuple[Val, int]] = {}
        self.path: Truth = full_truth(0, holds=True)
        self.epoch = epochs.start(0)
        self.fold_path: Truth | None = None
        self.footprints: list[Footprint] = []
        self.unplaced: dict[int, Refusal] = {}
        self.nest: tuple[Turn, ...] = ()
        self.repeats = False
        self.stepped, self.written, self.early = stepped, written, early
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
                            result,
                            self.unknown_value(result, Unknown(f"it comes from {statement.name}", statement.site)),
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
                loops.run_for(self, statement)
            case While():
                loops.run_while(self, statement)
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

    def unknown_value(self, value: Value, why: Unknown) -> Val:
        return maybe(len(self.frame.loops) + len(value.shape), why) if value.element == Int(1) else why

    def _op(self, op: Op) -> None:
        results = apply(op, [self.get(o) for o in op.operands], self.context, self.frame)
        for result, what in zip(op.results, results, strict=True):
            if isinstance(what, Unknown):
                what = self.unknown_value(result, what)
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
        self.epoch = epochs.passed(self.aligned_epoch(), passed, self.frame, barrier=barrier)

    def aligned_epoch(self) -> Epoch:
        counts = [aligned(c, 0, len(self.frame.loops)) for c in (self.epoch.barriers, self.epoch.syncs)]
        barriers, syncs = (c for c in counts if not isinstance(c, Truth))
        return Epoch(barriers, syncs)

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def _access(self, access: Access) -> None:
        relevant = access.index in self.slice.relevant
        feeds = access.result is not None and access.result.index in self.slice.values
        if not (relevant or feeds):
            return
        where = self.path_over(len(access.shape))
        if access.mask is not None:
            where = conjunction(where, self.truth(access.mask), self.frame, access.shape)
        address = self.get(access.pointer)
        assert not isinstance(address, Truth)
        if relevant and not is_empty(where.may):
            known_address = self._placed(address, where, access)
            if isinstance(known_address, Refusal):
                self.unplaced.setdefault(access.index, known_address)
            else:
                epoch, loops = self.aligned_epoch(), self.frame.loops
                self.footprints.append(Footprint(access, known_address, where, epoch, loops, self.nest, self.repeats))
        if feeds:
            assert access.result is not None
            self.bind(access.result, self._read(access, address, self._read_lanes(access)))

    def _placed(self, address: Number, where: Truth, access: Access) -> Affine | Dense | Refusal:
        """The address, or why it is not known in a lane that may be active."""
        if isinstance(address, Unknown):
            return Refusal("indirect-address", f"the address is not known: {address.reason}", address.site)
        if isinstance(address, Affine) or address.known is None:
            return address
        active = cells_of(where.may, self.frame, access.shape)
        if (active & ~address.known).any():
            return Refusal("indirect-address", "the address of an active lane is not known", access.site)
        return Dense(address.data)

    def path_over(self, tile_axes: int) -> Truth:
        def stretch(region: Region) -> Region:
            if isinstance(region, Box):
                return Box(region.rows, region.bounds + (None,) * tile_axes)
            return Cells(region.data.reshape(region.data.shape + (1,) * tile_axes))

        path = aligned(self.path, 0, len(self.frame.loops))
        assert isinstance(path, Truth)
        may = stretch(path.may)
        return Truth(may, may if path.exact else stretch(path.must), path.why)

    def _read_lanes(self, access: Access) -> Truth:
        """The lanes that are read if the access runs at all: a value is looked at only where what made it ran."""
        path = self.path_over(len(access.shape))
        runs = Truth(path.may, path.may)
        return runs if access.mask is None else conjunction(runs, self.truth(access.mask), self.frame, access.shape)

    def _read(self, access: Access, address: Number, lanes: Truth) -> Val:
        result = access.result
        assert result is not None
        if access.kind is not Kind.LOAD:
            return self.unknown_value(result, Unknown("it is what an atomic observed", access.site))
        if not isinstance(result.element, Int | Ptr):
            return Unknown("it is loaded floating-point data", access.site)
        if isinstance(address, Unknown):
            return self.unknown_value(
                result, Unknown(f"it is loaded from an unknown address: {address.reason}", access.site)
            )
        cells = densify(address, self.frame, access.shape)
        active = cells_of(lanes.must, self.frame, access.shape)
        shape = np.broadcast_shapes(cells.data.shape, active.shape)
        at, live = np.broadcast_to(cells.data, shape), np.broadcast_to(active, shape)
        if cells.known is not None:
            live = live & cells.known
        homes = np.unique(self.space.home(at[live]))
        if access.index not in self.early and any(int(h) in self.written for h in homes):
            why = Unknown("it is loaded from a tensor that this launch writes", access.site)
            return self.unknown_value(result, why)
        data, sure, reason = self.space.read(at, access.element_bytes, live)
        if live.any() and not sure[live].any():
            return self.unknown_value(
                result, Unknown(f"it comes from memory whose contents are not known: {reason}", access.site)
            )
        self.reads_contents = True
        self.read_clusters |= {int(h) for h in homes}
        if isinstance(result.element, Ptr):
            data = self.space.from_integer(data)
        value = self._with_other(access, Dense(data, None if sure.all() else sure))
        return truth_of(value, self.frame, result.shape) if result.element == Int(1) else by_row(value)

    def _with_other(self, access: Access, loaded: Dense) -> Dense | Unknown:
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
        self.path = conjunction(self.path_over(0), condition, self.frame, ())
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
                    self.bind(result, self.unknown_value(result, why))
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
            wide = self.widen(condition, len(result.shape))
            self.bind(result, select(wide, left, other, self.frame, result.shape))

    def _maybe_get(self, value: Value) -> Val | None:
        return self.get(value) if value.index in self.env else None

    def widen(self, condition: Truth, tile_axes: int) -> Truth:
        saved, self.path = self.path, condition
        out = self.path_over(tile_axes)
        self.path = saved
        return out
