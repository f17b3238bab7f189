"""Folds a program into one record per access, with closed forms for what loops carry.

A carried value whose next value is itself plus something the loop does not change is `first + round * step`; one whose next
value does not depend on the round before is that value of the round before; anything else is unknown in every round.
"""

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
    Element,
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
from racefree.proof.symbolic.records import Fence, Loop, Obligation, Place, Reading, Record
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.terms import (
    FALSE,
    TRUE,
    ZERO,
    Condition,
    Fn,
    FreeTruth,
    Read,
    Relation,
    Sum,
    Term,
    Var,
    VarKind,
    add,
    apply,
    both,
    choose,
    compare,
    either,
    is_condition,
    multiply,
    negate,
    number,
    read,
    scale,
    subtract,
    unknown,
    variable,
)
from racefree.proof.symbolic.tiles import MOVERS, lane, position

GRID_MAX = 2**31 - 1
MAX_ROUNDS = 2**63
MOST_OBLIGATIONS = 300
MOST_PARTS = 300


def program_id(axis: int) -> Var:
    return Var(VarKind.PROGRAM, f"p{axis}", 0, GRID_MAX - 1)


def grid_size(axis: int) -> Var:
    return Var(VarKind.GRID, f"g{axis}", 1, GRID_MAX)


def base(parameter: str) -> Var:
    """The address of a pointer parameter."""
    return Var(VarKind.BASE, f"base:{parameter}")


Binding = Callable[[Parameter], Term | None]
"""The term of a parameter, or None for one that no address can be computed from (a float)."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of a value: its term (None: no integer), what must fit, and the reads lane i depends on at lane i."""

    term: Term | None
    obligations: frozenset[Obligation] = frozenset()
    reads: frozenset[int] = frozenset()


NOTHING = Cell(None)

_IN_PLACE = ("arith.", "math.", "tt.addptr", "tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr", "tt.fp_to_fp", "tt.mulhi")
"""Operations whose element at a lane depends on the operands at that lane only."""


@dataclass(slots=True)
class _Around:
    """What surrounds a statement: its path, the obligations of that path, its loops and its place."""

    path: Condition = TRUE
    obligations: frozenset[Obligation] = frozenset()
    loops: tuple[Loop, ...] = ()
    place: Place = ()


@dataclass(slots=True)
class Lowering:
    """`bind` gives parameters their terms; `unwritten` are the accesses (by index) that read memory nobody writes."""

    program: Program
    bind: Binding
    unwritten: frozenset[int]
    env: dict[int, Cell] = field(default_factory=dict)
    records: list[Record] = field(default_factory=list)
    fences: list[Fence] = field(default_factory=list)
    assumptions: list[tuple[Condition, object]] = field(default_factory=list)
    axes: set[int] = field(default_factory=set)
    numbers: int = 0
    orders: int = 0
    bounder: Bounder = field(default_factory=Bounder)

    def run(self) -> Reading:
        for parameter in self.program.parameters:
            self.env[parameter.value.index] = Cell(self.bind(parameter))
        self._body(self.program.body, _Around())
        assumptions = tuple((c, s) for c, s in self.assumptions)
        return Reading(tuple(self.records), tuple(self.fences), frozenset(self.axes), assumptions)  # type: ignore[arg-type]

    # ---- statements --------------------------------------------------------------------------------------------------

    def _body(self, body: tuple[Statement, ...], around: _Around) -> None:
        for statement in body:
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
                        self.fences.append(Fence(self._order(), around.place, loops))
                case Assume():
                    self._assume(statement, around)
                case Guard():
                    self._guard(statement, around)
                case If():
                    self._if(statement, around)
                case For():
                    self._for(statement, around)
                case While():
                    self._while(statement, around)
                case _:
                    assert_never(statement)

    def _order(self) -> int:
        self.orders += 1
        return self.orders

    def _number(self) -> int:
        self.numbers += 1
        return self.numbers

    def _op(self, op: Op, around: _Around) -> None:
        cells = [self._get(v) for v in op.operands]
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
            obligations = _select_obligations(cells)
        if results is None:
            obligations, added = frozenset(), []
            results = [self._unknown(r, around) for r in op.results]
        in_place = op.name.startswith(_IN_PLACE) and bool(op.results)
        same = in_place and all(v.shape == op.results[0].shape for v in op.operands)
        reads = frozenset().union(*(c.reads for c in cells)) if same else frozenset()
        parts = max((len(t.parts) for t in results if isinstance(t, Sum)), default=0)
        if len(obligations) > MOST_OBLIGATIONS or parts > MOST_PARTS:
            raise Refused("too-large", "an address takes too much arithmetic to read symbolically", op.site)
        for place, (value, term) in enumerate(zip(op.results, results, strict=True)):
            moved = frozenset(_moved(op, o, place) for o in obligations) if op.name in MOVERS else obligations
            self.env[value.index] = Cell(term, moved | frozenset(added), reads)

    def _made(self, op: Op) -> Term | None:
        match op.name:
            case "tt.get_program_id" | "tt.get_num_programs":
                axis = op.attributes["axis"]
                assert isinstance(axis, int)
                if op.name == "tt.get_program_id":
                    self.axes.add(axis)
                    return variable(program_id(axis))
                return variable(grid_size(axis))
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
            moved = MOVERS[op.name](op, terms)
            return (None if moved is None else list(moved)), []
        found = elementwise(op, terms, self.bounder, _width)
        return (None, []) if found is None else ([found[0]], found[1])

    def _data(self, data: Data, around: _Around) -> None:
        shapes = {v.shape for v in (*data.operands, *data.results)}
        reads = frozenset[int]()
        if data.lanewise and len(shapes) == 1:
            reads = reads.union(*(self._get(v).reads for v in data.operands))
        for result in data.results:
            self.env[result.index] = Cell(self._unknown(result, around), reads=reads)

    def _assume(self, statement: Assume, around: _Around) -> None:
        cell = self._get(statement.condition)
        if cell.term is not None:
            holds = either(negate(around.path), truth(cell.term))
            self.assumptions.append((holds, statement.site))

    def _guard(self, statement: Guard, around: _Around) -> None:
        self._body(statement.body, self._under(around, statement.condition, True, (self._number(), 0)))

    def _under(self, around: _Around, condition: Value, wanted: bool, step: tuple[int, int]) -> _Around:
        cell = self._get(condition)
        held = self._condition(condition, around)
        held = held if wanted else negate(held)
        added = frozenset(replace(o, guard=both(around.path, o.guard)) for o in cell.obligations)
        return _Around(both(around.path, held), around.obligations | added, around.loops, (*around.place, step))

    def _condition(self, value: Value, around: _Around) -> Condition:
        term = self._get(value).term
        return truth(term) if term is not None else self._free_truth(value, around)

    def _if(self, statement: If, around: _Around) -> None:
        number_ = self._number()
        held = self._condition(statement.condition, around)
        obligations = self._get(statement.condition).obligations
        self._body(statement.then_body, self._under(around, statement.condition, True, (number_, 0)))
        thens = [self._get(v) for v in statement.then_yields]
        self._body(statement.else_body, self._under(around, statement.condition, False, (number_, 1)))
        elses = [self._get(v) for v in statement.else_yields]
        for result, then, other in zip(statement.results, thens, elses, strict=True):
            if then.term is None or other.term is None:
                self.env[result.index] = Cell(self._unknown(result, around))
                continue
            term = _chosen(held, then.term, other.term)
            self.env[result.index] = Cell(term, obligations | _of_arms(then, other, held))

    # ---- loops -------------------------------------------------------------------------------------------------------

    def _for(self, loop: For, around: _Around) -> None:
        number_ = self._number()
        bounds = [self._get(v) for v in (loop.lower, loop.upper, loop.step)]
        obligations = frozenset().union(*(b.obligations for b in bounds))
        low, high, step = (integer(b.term) if b.term is not None else None for b in bounds)
        round_ = Var(VarKind.ITERATION, f"round{number_}", 0, MAX_ROUNDS)
        index: Term | None = None
        runs: Condition = TRUE
        added: frozenset[Obligation] = frozenset()
        exact = False
        if low is not None and step is not None and self.bounder.positive(step):
            if high is not None:
                round_ = self._narrowed(round_, low, high, step)
            start = add((low, multiply(variable(round_), step)))
            index = start
            readable = not loop.unsigned or (
                high is not None and self.bounder.never_negative(low) and self.bounder.never_negative(high)
            )
            if high is not None and readable:
                exact = True
                runs = compare(Relation.LT, start, high)
                added = self._increment_fits(loop, start, step, high, runs)
        if runs == FALSE:  # a loop without rounds: its body is never reached
            for result, start_value in zip(loop.results, loop.inits, strict=True):
                self.env[result.index] = self._get(start_value)
            return
        described = Loop(number_, round_, runs, exact)
        inner = _Around(
            both(around.path, runs),
            around.obligations | frozenset(replace(o, guard=both(around.path, o.guard)) for o in obligations | added),
            (*around.loops, described),
            (*around.place, (number_, 0)),
        )
        if index is None:
            index = self._unknown(loop.induction, inner)
        self.env[loop.induction.index] = Cell(index, obligations)
        inits = [self._get(v) for v in loop.inits]
        self._carry(loop.carried, inits, loop.yields, inner, lambda lowering: lowering._body(loop.body, inner))
        rounds = self._rounds(low, high, step) if exact else None
        for result, init, cell in zip(
            loop.results, inits, self._after(loop, inits, inner, round_, rounds), strict=True
        ):
            self.env[result.index] = cell if cell is not None else Cell(self._unknown(result, around), init.obligations)

    def _increment_fits(self, loop: For, start: Sum, step: Sum, high: Sum, runs: Condition) -> frozenset[Obligation]:
        """The index after a round that runs must not wrap, or the loop would go on."""
        bits = _width(loop.induction.element)
        bottom, top = limits(bits)
        upper, most = self.bounder.of(high)[1], self.bounder.of(step)[1]
        if upper is not None and most is not None and upper - 1 + most <= top:
            return frozenset()
        return frozenset((Obligation(bits, add((start, step)), bottom, top, runs),))

    def _narrowed(self, round_: Var, low: Sum, high: Sum, step: Sum) -> Var:
        """The round variable with a bound, where the loop's bounds are constant."""
        rounds = self._rounds(low, high, step)
        if rounds is None:
            return round_
        _, most = self.bounder.of(rounds)
        return round_ if most is None else replace(round_, high=max(most - 1, 0))

    def _rounds(self, low: Sum | None, high: Sum | None, step: Sum | None) -> Sum | None:
        """How many rounds a loop makes."""
        if low is None or high is None or step is None or step.parts:
            return None
        span = add((subtract(high, low), number(step.constant - 1)))
        return apply(Fn.MAX, apply(Fn.FLOOR, span, step), ZERO)

    def _carry(
        self,
        carried: tuple[Value, ...],
        inits: list[Cell],
        yields: tuple[Value, ...],
        inner: _Around,
        fold: Callable[[Lowering], None],
    ) -> None:
        """Find closed forms by folding a round with placeholders, then fold it for good."""
        round_ = inner.loops[-1].iteration
        names = [Var(VarKind.PARAMETER, f"carried{inner.loops[-1].number}:{n}") for n in range(len(carried))]
        probe = self._copy()
        for value, name, init in zip(carried, names, inits, strict=True):
            probe.env[value.index] = Cell(None if init.term is None or is_condition(init.term) else variable(name))
        fold(probe)
        nexts = [probe._get(v) for v in yields]
        forms = self._closed(names, inits, [n.term for n in nexts], round_)
        resolved = Replacer({n: f for n, f in zip(names, forms, strict=True) if isinstance(f, Sum)}.get)
        for value, form, init, last in zip(carried, forms, inits, nexts, strict=True):
            if form is None:
                self.env[value.index] = Cell(self._unknown(value, inner))
                continue
            kept = frozenset(
                Obligation(o.bits, resolved.sum(o.value), o.low, o.high, resolved.condition(o.guard))
                for o in last.obligations
                if o.value != last.term or not _mentions(o, names)
            )
            self.env[value.index] = Cell(form, init.obligations | kept | self._fits(value, form, inner))
        fold(self)

    def _fits(self, value: Value, form: Term, inner: _Around) -> frozenset[Obligation]:
        """The closed form counts without wrapping, so it must fit the width in every round that runs."""
        bits = _width(value.element)
        if not isinstance(value.element, Int) or bits == 1 or not isinstance(form, Sum):
            return frozenset()
        low, high = limits(bits)
        bottom, top = self.bounder.of(form)
        if bottom is not None and top is not None and low <= bottom and top <= high:
            return frozenset()
        return frozenset((Obligation(bits, form, low, high, inner.path),))

    def _copy(self) -> Lowering:
        return replace(
            self,
            env=dict(self.env),
            records=[],
            fences=[],
            assumptions=[],
            axes=self.axes,
            numbers=self.numbers,
            orders=self.orders,
        )

    def _closed(self, names: list[Var], inits: list[Cell], nexts: list[Term | None], round_: Var) -> list[Term | None]:
        """The term of each carried value at round `round_`, or None."""
        known: dict[Var, Sum] = {}
        forms: list[Term | None] = [None] * len(names)
        private = set(names) | {round_}
        changed = True
        while changed:
            changed = False
            for n, (name, init, following) in enumerate(zip(names, inits, nexts, strict=True)):
                if forms[n] is not None or init.term is None or following is None or is_condition(init.term):
                    continue
                form = self._form(name, integer(init.term), integer(following), round_, private, known)
                if form is not None:
                    forms[n] = known[name] = form
                    changed = True
        return forms

    def _form(
        self, name: Var, init: Sum, following: Sum, round_: Var, private: set[Var], known: dict[Var, Sum]
    ) -> Sum | None:
        step = subtract(following, variable(name))
        if step == ZERO:
            return init
        if not _uses_any(step, private, round_):
            return add((init, multiply(variable(round_), step)))
        others = private - {round_} - set(known)
        if _uses_any(following, others, None):
            return None
        previous = Replacer(known.get).sum(following)
        if _has_unknown(previous):
            return None
        last = Replacer({round_: subtract(variable(round_), number(1))}.get).sum(previous)
        return choose(compare(Relation.EQ, variable(round_), ZERO), init, last)

    def _after(
        self, loop: For, inits: list[Cell], inner: _Around, round_: Var, rounds: Sum | None
    ) -> list[Cell | None]:
        """What the loop yields at its end: the carried value of the round that no longer runs."""
        out: list[Cell | None] = []
        for value, init in zip(loop.carried, inits, strict=True):
            cell = self.env[value.index]
            if cell.term is not None and cell.term == init.term:
                out.append(init)
            elif cell.term is None or rounds is None or not isinstance(cell.term, Sum) or _has_unknown(cell.term):
                out.append(None)
            else:
                ending = Replacer({round_: rounds}.get)
                obligations = frozenset(
                    Obligation(o.bits, ending.sum(o.value), o.low, o.high, ending.condition(o.guard))
                    for o in cell.obligations
                    if o not in init.obligations
                )
                term = ending.sum(cell.term)
                fits = self._fits(value, term, _Around(TRUE))
                out.append(Cell(term, init.obligations | obligations | fits))
        return out

    def _while(self, loop: While, around: _Around) -> None:
        number_ = self._number()
        round_ = Var(VarKind.ITERATION, f"round{number_}", 0, MAX_ROUNDS)
        described = Loop(number_, round_, TRUE, False)
        inner = _Around(around.path, around.obligations, (*around.loops, described), (*around.place, (number_, 0)))
        inits = [self._get(v) for v in loop.inits]
        probe = self._copy()
        probe._carry_while(loop, around, inner, inits)
        going = probe._condition(loop.condition, inner)
        before = Replacer({round_: subtract(variable(round_), number(1))}.get).condition(going)
        reached = either(compare(Relation.EQ, variable(round_), ZERO), before)
        self._carry_while(loop, around, replace(inner, path=both(around.path, reached)), inits)
        for result, source in zip(loop.results, loop.forwarded, strict=True):
            cell = self._get(source)
            fixed = cell.term is not None and not any(
                leaf == round_ or not isinstance(leaf, Var) for leaf in leaves(cell.term)
            )
            self.env[result.index] = cell if fixed else Cell(self._unknown(result, around))

    def _carry_while(self, loop: While, around: _Around, inner: _Around, inits: list[Cell]) -> None:
        number_ = inner.loops[-1].number

        def fold(lowering: Lowering) -> None:
            lowering._body(loop.before, inner)
            after = lowering._under(inner, loop.condition, True, (number_, 1))
            after = replace(after, place=(*around.place, (number_, 1)))
            for value, source in zip(loop.after_args, loop.forwarded, strict=True):
                lowering.env[value.index] = lowering._get(source)
            lowering._body(loop.after, after)

        self._carry(loop.before_args, inits, loop.after_yields, inner, fold)

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def _access(self, access: Access, around: _Around) -> None:
        pointer = self._get(access.pointer)
        mask: Condition = TRUE
        mask_cell = NOTHING
        if access.mask is not None:
            mask_cell = self._get(access.mask)
            mask = truth(mask_cell.term) if mask_cell.term is not None else self._free_truth(access.mask, around)
        address = integer(pointer.term) if pointer.term is not None else self._unknown_integer(access.pointer, around)
        active = both(around.path, mask)
        obligations = around.obligations
        obligations |= frozenset(replace(o, guard=both(around.path, o.guard)) for o in mask_cell.obligations)
        obligations |= frozenset(replace(o, guard=both(active, o.guard)) for o in pointer.obligations)
        stored = frozenset().union(*(self._get(v).reads for v in access.operands))
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
            self._order(),
            tuple(self._get(v).term for v in access.operands),
        )
        self.records.append(record)
        if access.result is not None:
            self._result(access, access.result, address, mask, record, around)

    def _result(
        self, access: Access, result: Value, address: Sum, mask: Condition, record: Record, around: _Around
    ) -> None:
        unmasked = mask == TRUE
        reads = frozenset((access.index,)) | (record.depends if unmasked else frozenset())
        fresh = self._unknown(result, around)
        element = result.element
        if access.kind is Kind.LOAD and access.index in self.unwritten and isinstance(element, Int):
            low, high = limits(element.bits) if element.bits > 1 else (0, 1)
            found = read(access.element_bytes, address, low, high)
            value: Term = truth(found) if element.bits == 1 else found
            if not unmasked:
                other = None if access.other is None else self._get(access.other).term
                value = _chosen(mask, value, other if other is not None else fresh if fresh is not None else value)
            self.env[result.index] = Cell(value, record.obligations, reads)
        else:
            self.env[result.index] = Cell(fresh, reads=reads)

    # ---- values ------------------------------------------------------------------------------------------------------

    def _get(self, value: Value) -> Cell:
        return self.env.get(value.index, NOTHING)

    def _indices(self, value: Value, around: _Around) -> tuple[Sum, ...]:
        lanes = tuple(position(d, n) for d, n in enumerate(value.shape) if n > 1)
        return (*lanes, *(variable(loop.iteration) for loop in around.loops))

    def _unknown(self, value: Value, around: _Around) -> Term | None:
        """A fresh value of the right width for each lane and iteration; None for a value no address is made of."""
        match value.element:
            case Int(1):
                return self._free_truth(value, around)
            case Int() | Ptr():
                return self._unknown_integer(value, around)
            case Float() | Opaque():
                return None
            case _:
                assert_never(value.element)

    def _unknown_integer(self, value: Value, around: _Around) -> Sum:
        bits = value.element.bits if isinstance(value.element, Int) else 0
        low, high = limits(bits) if bits else (None, None)
        return unknown(f"v{value.index}", self._indices(value, around), low, high)

    def _free_truth(self, value: Value, around: _Around) -> Condition:
        return FreeTruth(f"v{value.index}", self._indices(value, around))


def _width(element: Element | object) -> int:
    match element:
        case Int():
            return element.bits
        case Ptr():
            return 64
        case _:
            return 0


def _chosen(condition: Condition, then: Term, other: Term) -> Term:
    if isinstance(then, Sum) and isinstance(other, Sum):
        return choose(condition, then, other)
    return either(both(condition, truth(then)), both(negate(condition), truth(other)))


def _guarded(obligations: frozenset[Obligation], condition: Condition) -> frozenset[Obligation]:
    return frozenset(replace(o, guard=both(condition, o.guard)) for o in obligations)


def _of_arms(then: Cell, other: Cell, held: Condition) -> frozenset[Obligation]:
    """What both arms need is needed anyway; the rest only where its arm is taken."""
    shared = then.obligations & other.obligations
    one, two = then.obligations - shared, other.obligations - shared
    return shared | _guarded(one, held) | _guarded(two, negate(held))


def _select_obligations(cells: list[Cell]) -> frozenset[Obligation]:
    """An arm's obligations hold only where the arm is taken."""
    condition, then, other = cells
    if condition.term is None:
        return condition.obligations | then.obligations | other.obligations
    held = truth(condition.term)
    return condition.obligations | _of_arms(then, other, held)


def _moved(op: Op, obligation: Obligation, place: int) -> Obligation:
    """The obligation at the lanes an element has been moved to."""
    if len(op.operands) != 1:
        return obligation
    value, guard = MOVERS[op.name](op, [obligation.value]), MOVERS[op.name](op, [obligation.guard])
    if value is None or guard is None:
        return obligation
    return replace(obligation, value=integer(value[place]), guard=truth(guard[place]))


def _mentions(obligation: Obligation, names: list[Var]) -> bool:
    return any(leaf in names for leaf in leaves(obligation.value, obligation.guard))


def _uses_any(term: Sum, variables: set[Var], also: Var | None) -> bool:
    return any(leaf in variables or leaf == also or (not isinstance(leaf, Var | Read)) for leaf in leaves(term))


def _has_unknown(term: Sum) -> bool:
    return any(not isinstance(leaf, Var | Read) for leaf in leaves(term))


def lower(program: Program, bind: Binding, unwritten: frozenset[int]) -> Reading:
    """The program as records; see `Lowering`. Raises `Refused` (too-large)."""
    return Lowering(program, bind, unwritten).run()
