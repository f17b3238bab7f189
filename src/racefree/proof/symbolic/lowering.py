"""Folds a program into one record per access: operations become terms, branches and loops become paths."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import assert_never

from racefree.access import Kind
from racefree.errors import Refused
from racefree.graph.program import (
    Access,
    Assume,
    Barrier,
    Data,
    Float,
    For,
    Guard,
    If,
    Int,
    Op,
    Opaque,
    Parameter,
    Program,
    Ptr,
    Statement,
    Value,
    While,
)
from racefree.proof.symbolic.arithmetic import elementwise, integer, limits, truth
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.cells import (
    NOTHING,
    Around,
    Cell,
    Passed,
    chosen,
    moved,
    of_arms,
    select_obligations,
    width,
)
from racefree.proof.symbolic.loops import lower_for, lower_while
from racefree.proof.symbolic.records import Await, Fence, Obligation, Reading, Record
from racefree.proof.symbolic.terms import (
    FALSE,
    TRUE,
    Condition,
    FreeTruth,
    Sum,
    Term,
    add,
    both,
    either,
    negate,
    number,
    read,
    scale,
    unknown,
    variable,
)
from racefree.proof.symbolic.tiles import MOVERS, lane, position
from racefree.proof.symbolic.variables import grid_size, program_id

MOST_OBLIGATIONS = 300
MOST_PARTS = 300

Binding = Callable[[Parameter], Term | None]
"""The term of a parameter, or None for one that no address can be computed from (a float)."""

_IN_PLACE = ("arith.", "math.", "tt.addptr", "tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr", "tt.fp_to_fp", "tt.mulhi")
"""Operations whose element at a lane depends on the operands at that lane only."""


@dataclass(slots=True)
class Lowering:
    """`bind` gives parameters their terms; `unwritten` are the accesses (by index) that read memory nobody writes."""

    program: Program
    bind: Binding
    unwritten: frozenset[int]
    env: dict[int, Cell] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)
    awaits: list[Await] = field(default_factory=list)
    assumptions: list[tuple[Condition, object]] = field(default_factory=list)
    axes: set[int] = field(default_factory=set)
    numbers: int = 0
    orders: int = 0
    bounder: Bounder = field(default_factory=Bounder)

    def run(self) -> Reading:
        for parameter in self.program.parameters:
            self.env[parameter.value.index] = Cell(self.bind(parameter))
        self.body(self.program.body, Around())
        assumptions = tuple((c, s) for c, s in self.assumptions)
        records, fences, awaits = tuple(self.records), tuple(self.fences), tuple(self.awaits)
        return Reading(records, fences, frozenset(self.axes), assumptions, awaits)  # type: ignore[arg-type]

    # ---- statements --------------------------------------------------------------------------------------------------

    def body(self, body: tuple[Statement, ...], around: Around) -> Passed:
        """Folds the statements in turn; what is known behind the last one."""
        passed = Passed()
        for statement in body:
            fresh = self._statement(statement, around)
            if fresh.condition != TRUE:
                passed, around = passed.then(fresh), fresh.behind(around)
        return passed

    def _statement(self, statement: Statement, around: Around) -> Passed:
        match statement:
            case Op():
                self._op(statement, around)
            case Data():
                self._data(statement, around)
            case Access():
                self._access(statement, around)
            case Barrier():
                if statement.global_read and statement.global_write:
                    loops = tuple(loop.number for loop in around.loops)
                    self.fences.append(Fence(self.order(), around.place, loops))
            case Assume():
                self._assume(statement, around)
            case Guard():
                return self._guard(statement, around)
            case If():
                return self._if(statement, around)
            case For():
                lower_for(self, statement, around)
            case While():
                return lower_while(self, statement, around)
            case _:
                assert_never(statement)
        return Passed()

    def order(self) -> int:
        self.orders += 1
        return self.orders

    def number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _op(self, op: Op, around: Around) -> None:
        cells = [self.get(v) for v in op.operands]
        obligations = frozenset().union(*(c.obligations for c in cells))
        terms = [c.term for c in cells]
        made = self._made(op) if not cells else None
        added: list[Obligation] = []
        results: list[Term | None] | None = None
        if made is not None:
            results = [made]
        elif cells and all(t is not None for t in terms):
            results, added = self._computed(op, [t for t in terms if t is not None])
        if op.name == "arith.select" and results is not None:
            obligations = select_obligations(cells)
        if results is None:
            obligations, added = frozenset(), []
            results = [self.unknown(r, around) for r in op.results]
        in_place = op.name.startswith(_IN_PLACE) and bool(op.results)
        same = in_place and all(v.shape == op.results[0].shape for v in op.operands)
        reads = frozenset().union(*(c.reads for c in cells)) if same else frozenset()
        parts = max((len(t.parts) for t in results if isinstance(t, Sum)), default=0)
        if len(obligations) > MOST_OBLIGATIONS or parts > MOST_PARTS:
            raise Refused("too-large", "an address takes too much arithmetic to read symbolically", op.site)
        for place, (value, term) in enumerate(zip(op.results, results, strict=True)):
            kept = frozenset(moved(op, o, place) for o in obligations) if op.name in MOVERS else obligations
            self.env[value.index] = Cell(term, kept | frozenset(added), reads)

    def _made(self, op: Op) -> Term | None:
        match op.name:
            case "tt.get_program_id" | "tt.get_num_programs":
                axis = op.attributes["axis"]
                assert isinstance(axis, int)
                self.axes.add(axis)
                return variable(program_id(axis) if op.name == "tt.get_program_id" else grid_size(axis))
            case "tt.make_range":
                start, end = op.attributes["start"], op.attributes["end"]
                assert isinstance(start, int)
                assert isinstance(end, int)
                return add((number(start), position(0, end - start)))
            case "arith.constant":
                value = op.attributes.get("value")
                element = op.results[0].element
                if not isinstance(value, int) or not isinstance(element, Int):
                    return None
                if element.bits == 1:
                    return TRUE if value else FALSE
                half = 1 << (element.bits - 1)
                return number((value + half) % (2 * half) - half)
            case _:
                return None

    def _computed(self, op: Op, terms: list[Term]) -> tuple[list[Term | None] | None, list[Obligation]]:
        if op.name == "tt.addptr":
            pointee = op.operands[0].element
            assert isinstance(pointee, Ptr)
            return [add((integer(terms[0]), scale(integer(terms[1]), pointee.pointee_bytes)))], []
        if op.name in MOVERS:
            placed = MOVERS[op.name](op, terms)
            return (None if placed is None else list(placed)), []
        found = elementwise(op, terms, self.bounder, width)
        return (None, []) if found is None else ([found[0]], found[1])

    def _data(self, data: Data, around: Around) -> None:
        shapes = {v.shape for v in (*data.operands, *data.results)}
        reads = frozenset[int]()
        if data.lanewise and len(shapes) == 1:
            reads = reads.union(*(self.get(v).reads for v in data.operands))
        for result in data.results:
            self.env[result.index] = Cell(self.unknown(result, around), reads=reads)

    def _assume(self, statement: Assume, around: Around) -> None:
        cell = self.get(statement.condition)
        if cell.term is not None:
            holds = either(negate(around.path), truth(cell.term))
            self.assumptions.append((holds, statement.site))

    def _guard(self, statement: Guard, around: Around) -> Passed:
        held = self.condition(statement.condition, around)
        inner = self.under(around, statement.condition, True, (self.number(), 0))
        return self.body(statement.body, inner).only_if(held)

    def under(self, around: Around, condition: Value, wanted: bool, step: tuple[int, int]) -> Around:
        cell = self.get(condition)
        held = self.condition(condition, around)
        held = held if wanted else negate(held)
        added = frozenset(replace(o, guard=both(around.path, o.guard)) for o in cell.obligations)
        return Around(both(around.path, held), around.obligations | added, around.loops, (*around.place, step))

    def condition(self, value: Value, around: Around) -> Condition:
        term = self.get(value).term
        return truth(term) if term is not None else self.free_truth(value, around)

    def _if(self, statement: If, around: Around) -> Passed:
        number_ = self.number()
        held = self.condition(statement.condition, around)
        obligations = self.get(statement.condition).obligations
        one = self.body(statement.then_body, self.under(around, statement.condition, True, (number_, 0)))
        thens = [self.get(v) for v in statement.then_yields]
        two = self.body(statement.else_body, self.under(around, statement.condition, False, (number_, 1)))
        elses = [self.get(v) for v in statement.else_yields]
        for result, then, other in zip(statement.results, thens, elses, strict=True):
            if then.term is None or other.term is None:
                self.env[result.index] = Cell(self.unknown(result, around))
                continue
            term = chosen(held, then.term, other.term)
            self.env[result.index] = Cell(term, obligations | of_arms(then, other, held))
        return one.only_if(held).then(two.only_if(negate(held)))

    def copy(self) -> Lowering:
        """A reading that goes on from here without leaving a trace in this one."""
        return replace(self, env=dict(self.env), records=[], fences=[], assumptions=[], awaits=[])

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def _access(self, access: Access, around: Around) -> None:
        pointer = self.get(access.pointer)
        mask: Condition = TRUE
        mask_cell = NOTHING
        if access.mask is not None:
            mask_cell = self.get(access.mask)
            mask = truth(mask_cell.term) if mask_cell.term is not None else self.free_truth(access.mask, around)
        address = integer(pointer.term) if pointer.term is not None else self.unknown_integer(access.pointer, around)
        active = both(around.path, mask)
        obligations = around.obligations
        obligations |= frozenset(replace(o, guard=both(around.path, o.guard)) for o in mask_cell.obligations)
        obligations |= frozenset(replace(o, guard=both(active, o.guard)) for o in pointer.obligations)
        stored = frozenset().union(*(self.get(v).reads for v in access.operands))
        record = Record(
            access,
            address,
            mask,
            around.path,
            around.loops,
            tuple(lane(d, n) if n > 1 else None for d, n in enumerate(access.shape)),
            pointer.reads | mask_cell.reads | stored,
            obligations,
            around.place,
            self.order(),
            tuple(self.get(v).term for v in access.operands),
        )
        self.records.append(record)
        if access.result is not None:
            self._result(access, access.result, address, mask, record, around)

    def _result(
        self, access: Access, result: Value, address: Sum, mask: Condition, record: Record, around: Around
    ) -> None:
        unmasked = mask == TRUE
        reads = frozenset((access.index,)) | (record.depends if unmasked else frozenset())
        fresh = self.unknown(result, around)
        element = result.element
        if access.kind is Kind.LOAD and access.index in self.unwritten and isinstance(element, Int):
            low, high = limits(element.bits) if element.bits > 1 else (0, 1)
            found = read(access.element_bytes, address, low, high)
            value: Term = truth(found) if element.bits == 1 else found
            if not unmasked:
                other = None if access.other is None else self.get(access.other).term
                value = chosen(mask, value, other if other is not None else fresh if fresh is not None else value)
            self.env[result.index] = Cell(value, record.obligations, reads)
        else:
            self.env[result.index] = Cell(fresh, reads=reads)

    # ---- values ------------------------------------------------------------------------------------------------------

    def get(self, value: Value) -> Cell:
        return self.env.get(value.index, NOTHING)

    def indices(self, value: Value, around: Around) -> tuple[Sum, ...]:
        lanes = tuple(position(d, n) for d, n in enumerate(value.shape) if n > 1)
        return (*lanes, *(variable(loop.iteration) for loop in around.loops))

    def unknown(self, value: Value, around: Around) -> Term | None:
        """A fresh value of the right width for each lane and iteration; None for a value no address is made of."""
        match value.element:
            case Int(1):
                return self.free_truth(value, around)
            case Int() | Ptr():
                return self.unknown_integer(value, around)
            case Float() | Opaque():
                return None
            case _:
                assert_never(value.element)

    def unknown_integer(self, value: Value, around: Around) -> Sum:
        bits = value.element.bits if isinstance(value.element, Int) else 0
        low, high = limits(bits) if bits else (None, None)
        return unknown(f"v{value.index}", self.indices(value, around), low, high)

    def free_truth(self, value: Value, around: Around) -> Condition:
        return FreeTruth(f"v{value.index}", self.indices(value, around))


def lower(program: Program, bind: Binding, unwritten: frozenset[int]) -> Reading:
    """The program as records; see `Lowering`. Raises `Refused` (too-large)."""
    return Lowering(program, bind, unwritten).run()
