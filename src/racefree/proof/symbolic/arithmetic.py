"""What element-wise integer operations mean as terms, and what must hold for their machine width not to show."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from racefree.graph.program import Int, Op
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.records import Obligation
from racefree.proof.symbolic.terms import (
    ZERO,
    Condition,
    Fn,
    Relation,
    Sum,
    Term,
    add,
    apply,
    as_integer,
    both,
    choose,
    compare,
    either,
    is_condition,
    multiply,
    negate,
    number,
    subtract,
)

MOST_SHIFTS = 16


@dataclass(slots=True)
class Making:
    """One operation being computed: its operands' and result's widths, and the obligations it adds."""

    op: Op
    operand_bits: tuple[int, ...]
    bits: int
    bounder: Bounder
    obligations: list[Obligation] = field(default_factory=list)

    def fitting(self, term: Sum) -> Sum:
        """The term itself, with the obligation that it fits the result's width unless it always does."""
        low, high = limits(self.bits)
        bottom, top = self.bounder.of(term)
        if bottom is None or top is None or bottom < low or top > high:
            self.obligations.append(Obligation(self.bits, term, low, high))
        return term

    def unsigned(self, term: Sum, bits: int) -> Sum:
        """The unsigned reading of a signed value."""
        if self.bounder.never_negative(term):
            return term
        return choose(compare(Relation.LT, term, ZERO), add((term, number(1 << bits))), term)

    def wrapped(self, term: Sum, bits: int) -> Sum:
        """Two's complement of `bits` bits, exactly."""
        low, high = limits(bits)
        bottom, top = self.bounder.of(term)
        if bottom is not None and top is not None and low <= bottom and top <= high:
            return term
        return add((apply(Fn.MOD, add((term, number(-low))), number(1 << bits)), number(low)))


Rule = Callable[[Making, Sequence[Term]], Term | None]
RULES: dict[str, Rule] = {}


def limits(bits: int) -> tuple[int, int]:
    """The least and the greatest signed integer of a width."""
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


def rule(*names: str) -> Callable[[Rule], Rule]:
    def enter(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return enter


def integer(term: Term) -> Sum:
    return term if isinstance(term, Sum) else as_integer(term)


def truth(term: Term) -> Condition:
    return compare(Relation.NE, term, ZERO) if isinstance(term, Sum) else term


def _xor(a: Condition, b: Condition) -> Condition:
    return either(both(a, negate(b)), both(negate(a), b))


@rule("arith.addi", "arith.subi")
def _add(m: Making, x: Sequence[Term]) -> Term:
    if m.bits == 1:
        return _xor(truth(x[0]), truth(x[1]))
    a, b = integer(x[0]), integer(x[1])
    return m.fitting(add((a, b)) if m.op.name == "arith.addi" else subtract(a, b))


@rule("arith.muli")
def _multiply(m: Making, x: Sequence[Term]) -> Term:
    if m.bits == 1:
        return both(truth(x[0]), truth(x[1]))
    return m.fitting(multiply(integer(x[0]), integer(x[1])))


@rule("arith.divsi", "arith.remsi")
def _divide(m: Making, x: Sequence[Term]) -> Term | None:
    if m.bits == 1:
        return None
    a, b = integer(x[0]), integer(x[1])
    dividing = m.op.name == "arith.divsi"
    if m.bounder.never_negative(a) and m.bounder.positive(b):
        return apply(Fn.FLOOR if dividing else Fn.MOD, a, b)
    return m.fitting(apply(Fn.DIV, a, b)) if dividing else apply(Fn.REM, a, b)


@rule("arith.divui", "arith.remui")
def _divide_unsigned(m: Making, x: Sequence[Term]) -> Term | None:
    if m.bits == 1:
        return None
    a, b = (m.unsigned(integer(t), m.bits) for t in x)
    function = Fn.FLOOR if m.op.name == "arith.divui" else Fn.MOD
    return m.wrapped(apply(function, a, b), m.bits)


@rule("arith.andi", "arith.ori", "arith.xori")
def _bitwise(m: Making, x: Sequence[Term]) -> Term:
    if m.bits == 1:
        a, b = truth(x[0]), truth(x[1])
        match m.op.name:
            case "arith.andi":
                return both(a, b)
            case "arith.ori":
                return either(a, b)
            case _:
                return _xor(a, b)
    left, right = integer(x[0]), integer(x[1])
    if not left.parts:
        left, right = right, left
    return apply({"arith.andi": Fn.AND, "arith.ori": Fn.OR, "arith.xori": Fn.XOR}[m.op.name], left, right)


@rule("arith.shli")
def _shift_left(m: Making, x: Sequence[Term]) -> Term | None:
    value = integer(x[0])
    shifted = _shifted(m, integer(x[1]), lambda power: multiply(value, number(power)))
    return None if shifted is None else m.fitting(shifted)


@rule("arith.shrsi", "arith.shrui")
def _shift_right(m: Making, x: Sequence[Term]) -> Term | None:
    value = integer(x[0])
    if m.op.name == "arith.shrui" and m.bits > 1:
        value = m.unsigned(value, m.bits)
    shifted = _shifted(m, integer(x[1]), lambda power: apply(Fn.FLOOR, value, number(power)))
    return None if shifted is None else m.wrapped(shifted, m.bits)


def _shifted(m: Making, amount: Sum, by: Callable[[int], Sum]) -> Sum | None:
    """The value of `by` at the power of two of an amount that is one of few, as the number of a round may be."""
    low, high = m.bounder.of(amount)
    if m.bits == 1 or low is None or high is None or low < 0 or high >= m.bits or high - low >= MOST_SHIFTS:
        return None
    shifted = by(1 << high)
    for places in reversed(range(low, high)):
        shifted = choose(compare(Relation.EQ, amount, number(places)), by(1 << places), shifted)
    return shifted


@rule("arith.minsi", "arith.maxsi", "arith.minui", "arith.maxui")
def _extreme(m: Making, x: Sequence[Term]) -> Term | None:
    if m.bits == 1:
        return None
    a, b = integer(x[0]), integer(x[1])
    if m.op.name.endswith("ui") and not (m.bounder.never_negative(a) and m.bounder.never_negative(b)):
        return None
    return apply(Fn.MIN if "min" in m.op.name else Fn.MAX, a, b)


@rule("arith.extsi", "arith.index_cast")
def _sign_extend(m: Making, x: Sequence[Term]) -> Term:
    if is_condition(x[0]):
        return choose(truth(x[0]), number(-1), ZERO)
    return m.wrapped(integer(x[0]), m.bits) if m.operand_bits[0] > m.bits else integer(x[0])


@rule("arith.extui", "arith.index_castui")
def _zero_extend(m: Making, x: Sequence[Term]) -> Term:
    return integer(x[0]) if is_condition(x[0]) else m.unsigned(integer(x[0]), m.operand_bits[0])


@rule("arith.trunci")
def _truncate(m: Making, x: Sequence[Term]) -> Term:
    value = integer(x[0])
    if m.bits == 1:
        return compare(Relation.EQ, apply(Fn.MOD, value, number(2)), number(1))
    return m.wrapped(value, m.bits)


@rule("arith.bitcast", "tt.bitcast")
def _same(m: Making, x: Sequence[Term]) -> Term | None:
    """Casts between pointers and integers are not among these: tensors are moved apart, so their addresses differ here."""
    return x[0] if m.operand_bits[0] == m.bits else None


_RELATIONS = {
    "lt": (Relation.LT, False),
    "le": (Relation.LE, False),
    "gt": (Relation.LT, True),
    "ge": (Relation.LE, True),
}


@rule("arith.cmpi")
def _compare(m: Making, x: Sequence[Term]) -> Term:
    predicate = str(m.op.attributes["predicate"])
    if predicate in ("eq", "ne"):
        if m.operand_bits[0] == 1:
            different = _xor(truth(x[0]), truth(x[1]))
            return different if predicate == "ne" else negate(different)
        return compare(Relation.EQ if predicate == "eq" else Relation.NE, integer(x[0]), integer(x[1]))
    a, b = integer(x[0]), integer(x[1])
    if m.operand_bits[0] == 1 and predicate[0] == "s":
        a, b = multiply(a, number(-1)), multiply(b, number(-1))
    elif predicate[0] == "u":
        a, b = m.unsigned(a, m.operand_bits[0]), m.unsigned(b, m.operand_bits[0])
    relation, swapped = _RELATIONS[predicate[1:]]
    return compare(relation, b, a) if swapped else compare(relation, a, b)


@rule("arith.select")
def _select(m: Making, x: Sequence[Term]) -> Term:
    condition = truth(x[0])
    if is_condition(x[1]) or is_condition(x[2]):
        return either(both(condition, truth(x[1])), both(negate(condition), truth(x[2])))
    return choose(condition, integer(x[1]), integer(x[2]))


@rule("math.absi")
def _absolute(m: Making, x: Sequence[Term]) -> Term:
    value = integer(x[0])
    return m.fitting(apply(Fn.MAX, value, multiply(value, number(-1))))


def elementwise(
    op: Op, operands: Sequence[Term], bounder: Bounder, width: Callable[[object], int]
) -> tuple[Term, list[Obligation]] | None:
    """The term of an element-wise operation and its obligations, or None when it is not modelled."""
    found = RULES.get(op.name)
    if found is None or len(op.results) != 1:
        return None
    bits = tuple(width(v.element) for v in op.operands)
    making = Making(op, bits, width(op.results[0].element), bounder)
    if not making.bits or not all(bits):
        return None
    term = found(making, operands)
    if term is None:
        return None
    if isinstance(op.results[0].element, Int) and making.bits == 1:
        term = truth(term)
    return term, making.obligations
