"""Reads the address of one executed access back into a formula over program ids, lanes, loops and arguments."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from racefree.graph.launch import LaunchFacts, Tensor
from racefree.graph.program import (
    Access,
    For,
    If,
    Int,
    Op,
    Parameter,
    Program,
    Ptr,
    Statement,
    Value,
    While,
    children,
    walk,
)
from racefree.proof.footprint.memory import scalar_part
from racefree.proof.formula.operations import (
    COMPARE,
    EVALUATE,
    MOVES,
    SYMBOLS,
    Index,
    Unsaid,
    total,
    whole,
)
from racefree.proof.formula.terms import Name, Number, Term, Varies, binary, element
from racefree.proof.outcome import Side
from racefree.proof.replay.lanes import signed_int
from racefree.proof.replay.memory import Memory

MOST_TERMS = 400
MOST_DEPTH = 150

Loop = For | While


@dataclass(frozen=True, slots=True)
class _Defined:
    """The statement that defines a value, and the place of the value among its results (or carried values)."""

    by: Statement | Parameter
    place: int
    carried: bool = False


def definitions(program: Program) -> dict[int, _Defined]:
    """Where each value of the program comes from. A loop's induction value has place -1."""
    found = {p.value.index: _Defined(p, 0) for p in program.parameters}
    for statement in walk(program.body):
        match statement:
            case Op() | If():
                _enter(found, statement, statement.results)
            case Access(result=Value() as result):
                _enter(found, statement, (result,))
            case For():
                found[statement.induction.index] = _Defined(statement, -1, carried=True)
                _enter(found, statement, statement.carried, carried=True)
                _enter(found, statement, statement.results)
            case While():
                _enter(found, statement, statement.before_args, carried=True)
                for argument, forwarded in zip(statement.after_args, statement.forwarded, strict=True):
                    found[argument.index] = _Defined(Op("same", (argument,), (forwarded,), {}, statement.site), 0)
            case _:
                pass
    return found


def _enter(found: dict[int, _Defined], by: Statement, values: tuple[Value, ...], *, carried: bool = False) -> None:
    found.update({value.index: _Defined(by, place, carried) for place, value in enumerate(values)})


def loops_around(program: Program) -> dict[int, tuple[Loop, ...]]:
    """The loops around each access, by its index, outermost first."""
    found: dict[int, tuple[Loop, ...]] = {}

    def visit(body: tuple[Statement, ...], around: tuple[Loop, ...]) -> None:
        for statement in body:
            if isinstance(statement, Access):
                found[statement.index] = around
            inside = (*around, statement) if isinstance(statement, For | While) else around
            for nested in children(statement):
                visit(nested, inside)

    visit(program.body, ())
    return found


@dataclass(slots=True)
class Reader:
    """The formulas of one execution. `roots` collects the arguments that pointers were found to start from."""

    facts: LaunchFacts
    memory: Memory
    side: Side
    defined: dict[int, _Defined]
    loops: tuple[Loop, ...]
    roots: set[str] = field(default_factory=set)
    depth: int = 0
    inside: list[Loop] = field(default_factory=list)
    seen: dict[tuple[int, Index, tuple[int, ...]], Term] = field(default_factory=dict)

    def address(self) -> tuple[str, Term]:
        """The argument that the access goes through, and the element it touches. Raises `Unsaid`."""
        access = self.side.access
        lane = tuple(
            Name(_indexed("lane", axis, len(access.shape)), value, Varies.LANE) if extent > 1 else Number(0)
            for axis, (value, extent) in enumerate(zip(self.side.lane, access.shape, strict=True))
        )
        return self._pointer(access.pointer, lane)

    def _pointer(self, pointer: Value, index: Index) -> tuple[str, Term]:
        before, self.roots = self.roots, set()
        term = self.term(pointer, index)
        found, self.roots = self.roots, before
        if len(found) != 1:
            raise Unsaid
        return found.pop(), term

    def term(self, value: Value, index: Index) -> Term:
        """A value at one position of its tile; of a pointer, the elements between it and where its argument points."""
        key = (value.index, index, tuple(id(loop) for loop in self.inside))
        known = self.seen.get(key)
        if known is None or isinstance(value.element, Ptr):
            self.depth += 1
            if self.depth > MOST_DEPTH:
                raise Unsaid
            known = self.seen[key] = self._term(value, index)
            self.depth -= 1
            if known.size > MOST_TERMS:
                raise Unsaid
        return known

    def _term(self, value: Value, index: Index) -> Term:
        defined = self.defined.get(value.index)
        if defined is None:
            raise Unsaid
        match defined.by:
            case Parameter():
                return self._parameter(defined.by)
            case Op():
                return self._op(defined.by, index)
            case Access():
                return self._loaded(defined.by, index)
            case If():
                chosen = self.term(defined.by.condition, ()).value
                yields = defined.by.then_yields if chosen else defined.by.else_yields
                return self.term(yields[defined.place], index)
            case For() if defined.place < 0:
                return self._induction(defined.by)
            case For() | While() if defined.carried:
                return self._carried(defined.by, defined.place, index, self._iteration(defined.by))
            case For():
                return self._carried(defined.by, defined.place, index, Number(self._trips(defined.by)))
            case _:
                raise Unsaid

    def _parameter(self, parameter: Parameter) -> Term:
        if isinstance(parameter.value.element, Ptr):
            self.roots.add(parameter.name)
            return Number(0)
        number = scalar_part(parameter, self.facts, self.side.access.site)
        if number is None:
            raise Unsaid
        plain = not parameter.part and parameter.name.isidentifier()
        return Name(parameter.name, number, Varies.LAUNCH) if plain else Number(number)

    # ---- operations --------------------------------------------------------------------------------------------------

    def _op(self, op: Op, index: Index) -> Term:
        match op.name:
            case "tt.get_program_id":
                axis = whole(op, "axis")
                flat = self.facts.grid[1:] == (1, 1) and not axis
                return Name("pid" if flat else f"pid[{axis}]", self.side.program[axis], Varies.PROGRAM)
            case "tt.get_num_programs":
                axis = whole(op, "axis")
                return Name(f"grid[{axis}]", self.facts.grid[axis], Varies.LAUNCH)
            case "tt.make_range":
                return total(index[0], Number(whole(op, "start")))
            case "arith.constant":
                return _constant(op, index)
            case "arith.select":
                condition, yes, no = op.operands
                at = index if condition.shape else ()
                return self.term(yes if self.term(condition, at).value else no, index)
            case "tt.addptr":
                return self._advanced(op, index)
            case "same" | "arith.extsi" | "arith.extui" | "arith.trunci" | "arith.index_cast" | "arith.index_castui":
                return self.term(op.operands[0], index)
        if op.name in MOVES:
            return self.term(op.operands[0], MOVES[op.name](op, index))
        if op.name in SYMBOLS or op.name == "arith.cmpi":
            return self._computed(op, index)
        raise Unsaid

    def _advanced(self, op: Op, index: Index) -> Term:
        pointer = op.operands[0].element
        if not isinstance(pointer, Ptr) or pointer.pointee_bytes != self._element_bytes(op):
            raise Unsaid
        return total(self.term(op.operands[0], index), self.term(op.operands[1], index))

    def _element_bytes(self, op: Op) -> int:
        result = op.results[0].element
        return result.pointee_bytes if isinstance(result, Ptr) else 0

    def _computed(self, op: Op, index: Index) -> Term:
        left, right = (self.term(operand, index) for operand in op.operands)
        symbol = COMPARE.get(str(op.attributes["predicate"])) if op.name == "arith.cmpi" else SYMBOLS[op.name]
        if symbol is None:
            raise Unsaid
        a, b = left.value, right.value
        # Division of the hardware rounds to zero and shifts fill with zeros; the printed operators agree from 0 upwards.
        if symbol in ("//", "%", ">>", "<<", "&", "|", "^") and (a < 0 or b < 0 or (symbol in "//%" and not b)):
            raise Unsaid
        if symbol in ("<<", ">>") and b > 64:
            raise Unsaid
        return binary(symbol, left, right, int(EVALUATE[symbol](a, b)))

    def _loaded(self, access: Access, index: Index) -> Term:
        if access.kind.writes or access.result is None or not isinstance(access.result.element, Int):
            raise Unsaid
        if access.mask is not None and not self.term(access.mask, index).value:
            raise Unsaid
        name, at = self._pointer(access.pointer, index)
        argument = self.facts.arguments.get(name)
        if not isinstance(argument, Tensor) or argument.element_bytes != access.element_bytes:
            raise Unsaid
        address, storage = argument.address + at.value * argument.element_bytes, argument.storage
        # A formula does not wrap around where integers of the kernel do, so it may lead out of the tensor, however far.
        if not storage.address <= address < storage.address + storage.nbytes:
            raise Unsaid
        places = np.array([address], dtype=np.int64)
        read = self.memory.read(places, np.ones(1, dtype=np.bool_), access.element_bytes, access.result.element)
        held = read.scalar()
        if held is None or not name.isidentifier():
            raise Unsaid
        return element(name, at, signed_int(held, access.result.element.bits))

    # ---- loops -------------------------------------------------------------------------------------------------------

    def _iteration(self, loop: Loop) -> Term:
        place = next((at for at, around in enumerate(self.loops) if around is loop), None)
        if place is None or place >= len(self.side.iterations) or any(loop is one for one in self.inside):
            raise Unsaid
        name = _indexed("iteration", place, len(self.loops))
        return Name(name, self.side.iterations[place], Varies.LANE)

    def _induction(self, loop: For) -> Term:
        step = self.term(loop.step, ())
        iteration = self._iteration(loop)
        passed = binary("*", iteration, step, iteration.value * step.value)
        return total(self.term(loop.lower, ()), passed)

    def _trips(self, loop: For) -> int:
        lower, upper, step = (self.term(v, ()).value for v in (loop.lower, loop.upper, loop.step))
        if step <= 0:
            raise Unsaid
        return max(0, -((lower - upper) // step))

    def _carried(self, loop: Loop, place: int, index: Index, iteration: Term) -> Term:
        """A carried value that each iteration moves by the same amount, which nothing in the loop changes."""
        inits, yields, names = (
            (loop.inits, loop.yields, loop.carried)
            if isinstance(loop, For)
            else (loop.inits, loop.after_yields, loop.before_args)
        )
        moved: Term = Number(0)
        self.inside.append(loop)
        for step in self._steps(yields[place], names[place]):
            moved = total(moved, self.term(step, index))
        self.inside.pop()
        start = self.term(inits[place], index)
        return total(start, binary("*", iteration, moved, iteration.value * moved.value))

    def _steps(self, last: Value, first: Value) -> Iterator[Value]:
        """What is added on the way from a carried value to what the iteration yields for it."""
        value = last
        while value.index != first.index:
            defined = self.defined.get(value.index)
            if defined is None or not isinstance(defined.by, Op):
                raise Unsaid
            op = defined.by
            if op.name == "same":
                value = op.operands[0]
            elif op.name == "tt.addptr" or op.name == "arith.addi":
                value, step = op.operands
                yield step
            else:
                raise Unsaid


def _indexed(name: str, at: int, count: int) -> str:
    return name if count == 1 else f"{name}[{at}]"


def _constant(op: Op, index: Index) -> Term:
    value = op.attributes.get("value")
    if isinstance(value, tuple):
        at = 0
        for position, extent in zip(index, op.results[0].shape, strict=True):
            at = at * extent + position.value
        value = value[at]
    if not isinstance(value, int):
        raise Unsaid
    return Number(int(value))
