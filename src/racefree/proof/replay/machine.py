"""Runs one program instance with plain integers, one access or barrier at a time; no solver is involved."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod
from typing import assert_never

import numpy as np

from racefree.access import Kind, Site
from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Scalar, Tensor
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
    Parameter,
    Program,
    Ptr,
    Statement,
    Value,
    While,
)
from racefree.proof.replay.arithmetic import elementwise
from racefree.proof.replay.events import Event, Fence, Options, Pid, Steps, Unreplayable
from racefree.proof.replay.folds import folded, line_taint
from racefree.proof.replay.lanes import (
    Known,
    Lanes,
    Taint,
    along,
    blank,
    constant,
    element_bits,
    gathered,
    objects,
    ones,
    signed_int,
    union,
    unknown,
)
from racefree.proof.replay.memory import Memory
from racefree.proof.replay.tiles import advanced, made, moved


def steps(program: Program, facts: LaunchFacts, pid: Pid, memory: Memory, options: Options | None = None) -> Steps:
    """The accesses and barriers of instance `pid`, each yielded before it happens.

    Send the value a load or atomic observes (lanes that are masked off are ignored), or None: a load then reads
    `memory`, and an atomic's result is unknown. What is sent after a store or a barrier is ignored.
    Raises `Unreplayable` when an unknown value reaches an address, a mask, a branch or a bound.
    """
    return _Machine(program, facts, pid, memory, options or Options()).run()


@dataclass(slots=True)
class _Machine:
    program: Program
    facts: LaunchFacts
    pid: Pid
    memory: Memory
    options: Options
    values: dict[int, Lanes] = field(default_factory=dict)
    iterations: list[int] = field(default_factory=list)
    epoch: int = 0
    order: int = 0
    reads: int = 0
    spent: int = 0
    control: int = 0
    waited: int = 0

    def run(self) -> Steps:
        for parameter in self.program.parameters:
            self.values[parameter.value.index] = self._argument(parameter)
        yield from self._body(self.program.body)

    # ---- values ------------------------------------------------------------------------------------------------------

    def _argument(self, parameter: Parameter) -> Lanes:
        pattern = argument_pattern(parameter, self.facts.arguments.get(parameter.name))
        track = self.options.track
        if pattern is None:
            return unknown(parameter.value.shape, track=track)
        return constant(pattern, parameter.value, track=track)

    def _get(self, value: Value) -> Lanes:
        found = self.values.get(value.index)
        return unknown(value.shape, track=self.options.track) if found is None else found

    def _all(self, values: tuple[Value, ...]) -> list[Lanes]:
        return [self._get(v) for v in values]

    def _bind(self, names: tuple[Value, ...], values: list[Lanes]) -> None:
        for name, value in zip(names, values, strict=True):
            self.values[name.index] = value

    def _scalar(self, value: Value, what: str, site: Site) -> int:
        found = self._get(value).scalar()
        if found is None:
            raise Unreplayable(f"{what} is not known", site)
        return found

    def _decided_by(self, *conditions: Value) -> int:
        """What follows is reached because of these values. Returns what decided before."""
        before = self.control
        for condition in conditions:
            self.control |= self._sources(condition)
        return before

    def _sources(self, scalar: Value) -> int:
        taint = self._get(scalar).taint
        return 0 if taint is None else int(taint.reshape(-1)[0])

    def _spend(self, site: Site) -> None:
        self.spent += 1
        if self.spent > self.options.max_steps:
            raise Unreplayable(f"the instance takes more than {self.options.max_steps} steps", site)

    # ---- statements --------------------------------------------------------------------------------------------------

    def _body(self, body: tuple[Statement, ...]) -> Steps:
        for statement in body:
            match statement:
                case Op():
                    self._op(statement)
                    self._reduction(statement)
                case Data():
                    self._data(statement)
                    self._reduction(statement)
                case Access():
                    yield from self._access(statement)
                case Barrier():
                    yield from self._barrier(statement)
                case Assume():
                    self._assume(statement)
                case Guard():
                    before = self._decided_by(statement.condition)
                    if self._scalar(statement.condition, "a branch condition", statement.site):
                        yield from self._body(statement.body)
                    self.control = before
                case If():
                    yield from self._if(statement)
                case For():
                    yield from self._for(statement)
                case While():
                    yield from self._while(statement)
                case _:
                    assert_never(statement)

    def _op(self, op: Op) -> None:
        operands = self._all(op.operands)
        if op.name == "tt.addptr":
            results = [advanced(op, operands)]
        elif not operands:
            found = made(op, self.pid, self.facts.grid, track=self.options.track)
            results = [found] if found is not None else self._unknowns(op.results, operands, lanewise=False)
        else:
            results = self._computed(op, operands)
        self._bind(op.results, results)

    def _computed(self, op: Op, operands: list[Lanes]) -> list[Lanes]:
        single = elementwise(op, operands)
        if single is not None:
            return [single]
        several = moved(op, operands)
        if several is None:
            several = folded(op, operands, lambda op: self._taints(op, operands))
        return several if several is not None else self._unknowns(op.results, operands, lanewise=False)

    def _taints(self, op: Op, operands: list[Lanes]) -> list[Taint] | None:
        """What each result of a fold depends on: along the axis, or lane for lane where nothing is mixed."""
        if not self.options.track:
            return None
        axis = op.attributes.get("axis")
        if op.name in ("tt.reduce", "tt.scan") and isinstance(axis, int):
            taint = union([o.taint for o in operands if o.taint is not None], operands[0].shape)
            reverse = bool(op.attributes.get("reverse"))
            mixes = self.options.cross_lanes
            return [along(taint, axis, r.shape, reverse) if mixes else blank(r.shape) for r in op.results]
        lanewise = op.name not in ("tt.gather", "tt.histogram")
        mixed = [self._mixed(r.shape, operands, lanewise=lanewise) for r in op.results]
        return [m for m in mixed if m is not None]

    def _reduction(self, statement: Op | Data) -> None:
        if statement.name not in ("tt.reduce", "tt.scan") or not self.options.reductions_synchronise:
            return
        shape = statement.operands[0].shape
        one_line = len([extent for extent in shape if extent > 1]) == 1
        threads = self.facts.num_warps * self.facts.warp_size
        one_block = self.facts.num_warps > 1 and self.facts.num_ctas == 1
        self.epoch += one_line and one_block and prod(shape) >= threads

    def _data(self, data: Data) -> None:
        operands = self._all(data.operands)
        taint = line_taint(data, operands) if self.options.track and self.options.cross_lanes else None
        if taint is None:
            results = self._unknowns(data.results, operands, lanewise=data.lanewise)
        else:
            results = [unknown(r.shape, taint) for r in data.results]
        self._bind(data.results, results)

    def _unknowns(self, results: tuple[Value, ...], operands: list[Lanes], *, lanewise: bool) -> list[Lanes]:
        return [unknown(r.shape, self._mixed(r.shape, operands, lanewise=lanewise)) for r in results]

    def _mixed(self, shape: tuple[int, ...], operands: list[Lanes], *, lanewise: bool) -> Taint | None:
        if not self.options.track:
            return None
        taints = [o.taint for o in operands if o.taint is not None]
        if lanewise and all(t.shape in (shape, ()) for t in taints):
            return union(taints, shape)
        return gathered(taints, shape) if self.options.cross_lanes else blank(shape)

    def _assume(self, statement: Assume) -> None:
        condition = self._get(statement.condition)
        if bool((condition.known & (condition.bits == 0)).any()):
            raise Unreplayable("the kernel's assumption does not hold here", statement.site)

    def _barrier(self, barrier: Barrier) -> Steps:
        self._spend(barrier.site)
        both = barrier.global_read and barrier.global_write
        yield Fence(both, tuple(self.iterations), self.epoch, self.order, barrier.site)
        self.order += 1
        self.epoch += both

    def _if(self, statement: If) -> Steps:
        before = self._decided_by(statement.condition)
        if self._scalar(statement.condition, "a branch condition", statement.site):
            yield from self._body(statement.then_body)
            self._bind(statement.results, self._all(statement.then_yields))
        else:
            yield from self._body(statement.else_body)
            self._bind(statement.results, self._all(statement.else_yields))
        self.control = before

    def _for(self, loop: For) -> Steps:
        element = loop.induction.element
        bits = element_bits(element)
        low, high, step = (
            self._scalar(v, f"a loop {what}", loop.site)
            for v, what in ((loop.lower, "bound"), (loop.upper, "bound"), (loop.step, "step"))
        )
        if not loop.unsigned:
            low, high, step = (signed_int(v, bits) for v in (low, high, step))
        if step <= 0:
            raise Unreplayable("the loop step is not positive", loop.site)
        carried = self._all(loop.inits)
        before = self._decided_by(loop.lower, loop.upper, loop.step)
        self.iterations.append(0)
        while low < high:
            self._spend(loop.site)
            self.values[loop.induction.index] = constant(low, loop.induction, track=self.options.track)
            self._bind(loop.carried, carried)
            yield from self._body(loop.body)
            carried = self._all(loop.yields)
            low += step
            self.iterations[-1] += 1
        self.iterations.pop()
        self.control = before
        self._bind(loop.results, carried)

    def _while(self, loop: While) -> Steps:
        carried = self._all(loop.inits)
        self.iterations.append(0)
        while True:
            self._spend(loop.site)
            self._bind(loop.before_args, carried)
            yield from self._body(loop.before)
            forwarded = self._all(loop.forwarded)
            self.waited |= self._sources(loop.condition)
            if not self._scalar(loop.condition, "a loop condition", loop.site):
                break
            self._bind(loop.after_args, forwarded)
            yield from self._body(loop.after)
            carried = self._all(loop.after_yields)
            self.iterations[-1] += 1
        self.iterations.pop()
        self._bind(loop.results, forwarded)

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def _access(self, access: Access) -> Steps:
        self._spend(access.site)
        pointer = self._get(access.pointer)
        mask = None if access.mask is None else self._get(access.mask)
        active, sure = _activity(pointer, mask)
        complete = bool(sure.all())
        if not complete and access.index not in self.options.may_be_unknown:
            which = "a mask" if mask is not None and not mask.known.all() else "an address"
            raise Unreplayable(f"{which} is not known", access.site)
        operands = tuple(self._all(access.operands))
        depends = None
        if self.options.track:
            parts = [v.taint for v in (pointer, mask, *operands) if v is not None and v.taint is not None]
            depends = union(parts, access.shape)
        first_read = self.reads if access.result is not None else None
        addresses = np.asarray(pointer.bits).view(np.int64)
        event = Event(
            access, tuple(self.iterations), self.epoch, self.order, addresses, active, operands, complete, depends,
            first_read, self.control | self.waited,
        )  # fmt: skip
        observed = yield event
        self.order += 1
        if access.result is not None:
            self.values[access.result.index] = self._result(event, observed, mask)

    def _result(self, event: Event, observed: Lanes | None, mask: Lanes | None) -> Lanes:
        access = event.access
        assert access.result is not None
        element, shape = access.result.element, event.active.shape
        if observed is None:
            observed = self._unobserved(event)
        bits = np.where(event.active, observed.bits & ones(min(element_bits(element), 64)), np.uint64(0))
        known = np.where(event.active, observed.known, False)
        if access.other is not None and mask is not None:
            other = self._get(access.other)
            off = np.broadcast_to(mask.known & (mask.bits == 0), shape)
            bits = np.where(off, other.bits, bits)
            known = np.where(off, other.known, known)
        bits = np.where(known, bits, np.uint64(0))
        taint = self._read_taint(event, mask) if self.options.track else None
        return Lanes(np.asarray(bits).reshape(shape), np.asarray(known).reshape(shape), taint)

    def _unobserved(self, event: Event) -> Lanes:
        access = event.access
        assert access.result is not None
        if access.kind is not Kind.LOAD:
            return unknown(access.shape)
        return self.memory.read(event.addresses, event.active, access.element_bytes, access.result.element)

    def _read_taint(self, event: Event, mask: Lanes | None) -> Taint:
        """Each lane depends on its own read and on what led to it; one that is surely off, on what switched it off alone."""
        assert event.first_read is not None
        assert event.depends is not None
        shape, count = event.active.shape, int(event.active.size)
        off = np.zeros(shape, np.bool_) if mask is None else np.broadcast_to(mask.known & (mask.bits == 0), shape)
        instead = [mask, None if event.access.other is None else self._get(event.access.other)]
        kept = union([v.taint for v in instead if v is not None and v.taint is not None], shape)
        own = np.empty(count, dtype=np.object_)
        for lane, (gone, led) in enumerate(zip(off.reshape(-1), event.depends.reshape(-1), strict=True)):
            own[lane] = 0 if gone else 1 << (event.first_read + lane) | int(led)
        self.reads += count
        return union([kept, objects(own.reshape(shape), shape)], shape)


def _activity(pointer: Lanes, mask: Lanes | None) -> tuple[Known, Known]:
    """Where the access surely happens, and where it is known whether and at which address it does."""
    if mask is None:
        return pointer.known.copy(), pointer.known
    on = np.broadcast_to(mask.known & (mask.bits != 0), pointer.shape)
    off = np.broadcast_to(mask.known & (mask.bits == 0), pointer.shape)
    return on & pointer.known, off | (on & pointer.known)


def argument_pattern(parameter: Parameter, argument: Argument | None) -> int | None:
    """The bits the launch passes for one parameter, or None where it passes no integer."""
    match argument:
        case None:
            return None
        case Scalar():
            is_number = isinstance(argument.value, int) and isinstance(parameter.value.element, Int | Ptr)
            return int(argument.value) if is_number and argument.value is not None else None
        case Tensor():
            return argument.address
        case Descriptor():
            if parameter.part == "":
                return argument.base.address
            for word, values in (("shape", argument.shape), ("stride", argument.strides)):
                if parameter.part.startswith(word):
                    return values[int(parameter.part.removeprefix(word))]
            return None
        case _:
            assert_never(argument)
