"""Integer and truth-valued terms over program ids, grid sizes, lanes, loop iterations, parameters and loaded values.

Integers are mathematical: that a computation fits its machine width is an obligation beside the term. Sums are kept as a
constant plus sorted multiples of distinct atoms, so equal linear terms are equal objects up to `==`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias
from zlib import crc32

from racefree.proof.symbolic.equality import same


def _stable(*parts: object) -> int:
    """A hash that is the same in every process: of numbers, names and enumeration members, and of hashes made here."""
    return hash(tuple(p if isinstance(p, int) else crc32(p.encode()) if isinstance(p, str) else hash(p) for p in parts))


class VarKind(Enum):
    """What a variable stands for. The first three are private to one execution, the others shared.

    CARRIED is a tile that a loop carries, while its closed form is looked for: another value in each lane.
    """

    LANE = "lane"
    ITERATION = "iteration"
    PROGRAM = "program"
    GRID = "grid"
    PARAMETER = "parameter"
    BASE = "base"
    CARRIED = "carried"


@dataclass(frozen=True, slots=True)
class Var:
    """A variable with inclusive bounds that always hold (None: unbounded)."""

    kind: VarKind
    name: str
    low: int | None = None
    high: int | None = None
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", _stable(self.kind.value, self.name))

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value nothing is known about but its bounds, private to one execution: a function of lanes and iterations."""

    name: str
    indices: tuple[Sum, ...]
    low: int | None = None
    high: int | None = None

    __eq__ = same

    def __hash__(self) -> int:
        return _stable("unknown", self.name, *(hash(i) for i in self.indices))


@dataclass(frozen=True, slots=True)
class Sum:
    """`constant + sum(factor * atom)`, atoms distinct, no factor 0, at least one part unless constant alone."""

    constant: int
    parts: tuple[tuple[Atom, int], ...] = ()
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.constant, *[x for a, f in self.parts for x in (hash(a), f)])))

    __eq__ = same

    def __hash__(self) -> int:
        return self._hash


class Fn(Enum):
    """Functions of two integers that are not linear. Division and remainder truncate; FLOOR and MOD round down."""

    MUL = "mul"
    DIV = "div"
    REM = "rem"
    FLOOR = "floor"
    MOD = "mod"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    XOR = "xor"
    SHL = "shl"
    SHR = "shr"


@dataclass(frozen=True, slots=True)
class Apply:
    function: Fn
    left: Sum
    right: Sum
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", _stable(self.function.value, self.left, self.right))

    __eq__ = same

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Choose:
    """`then` where `condition` holds, else `other`."""

    condition: Condition
    then: Sum
    other: Sum
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", _stable("choose", self.condition, self.then, self.other))

    __eq__ = same

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Read:
    """The signed integer of `bytes` bytes at `address`, in memory no access of the launch writes: a function of the address."""

    bytes: int
    address: Sum
    low: int
    high: int
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", _stable("read", self.bytes, self.address))

    __eq__ = same

    def __hash__(self) -> int:
        return self._hash


Atom: TypeAlias = Var | Unknown | Apply | Choose | Read


class Relation(Enum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="


@dataclass(frozen=True, slots=True)
class Compare:
    relation: Relation
    left: Sum
    right: Sum
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", _stable(self.relation.value, self.left, self.right))

    __eq__ = same

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Truth:
    value: bool

    def __hash__(self) -> int:
        return int(self.value)


@dataclass(frozen=True, slots=True)
class FreeTruth:
    """A condition nothing is known about, private to one execution: a function of lanes and iterations."""

    name: str
    indices: tuple[Sum, ...] = ()

    __eq__ = same

    def __hash__(self) -> int:
        return _stable("truth", self.name, *(hash(i) for i in self.indices))


@dataclass(frozen=True, slots=True)
class Not:
    operand: Condition

    __eq__ = same

    def __hash__(self) -> int:
        return _stable("not", self.operand)


@dataclass(frozen=True, slots=True)
class Both:
    left: Condition
    right: Condition
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", _stable("both", self.left, self.right))

    __eq__ = same

    def __hash__(self) -> int:
        return self._hash


@dataclass(frozen=True, slots=True)
class Either:
    left: Condition
    right: Condition
    _hash: int = field(default=0, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", _stable("either", self.left, self.right))

    __eq__ = same

    def __hash__(self) -> int:
        return self._hash


Condition: TypeAlias = Compare | Truth | FreeTruth | Not | Both | Either
Term: TypeAlias = Sum | Condition
TRUE, FALSE = Truth(True), Truth(False)
ZERO, ONE = Sum(0), Sum(1)


def is_condition(term: Term) -> bool:
    return not isinstance(term, Sum)


def number(value: int) -> Sum:
    return Sum(value)


def variable(var: Var) -> Sum:
    return Sum(0, ((var, 1),))


def _of(atom: Atom) -> Sum:
    return Sum(0, ((atom, 1),))


def _key(part: tuple[Atom, int]) -> tuple[str, int]:
    """Variables by name, everything else by its stable hash."""
    atom = part[0]
    if isinstance(atom, Var):
        return (f"0{atom.kind.value}{atom.name}", 0)
    return (f"1{type(atom).__name__}", hash(atom))


def add(terms: Iterable[Sum]) -> Sum:
    constant = 0
    factors: dict[Atom, int] = {}
    for term in terms:
        constant += term.constant
        for atom, factor in term.parts:
            factors[atom] = factors.get(atom, 0) + factor
    parts = [(a, f) for a, f in factors.items() if f]
    return Sum(constant, tuple(sorted(parts, key=_key)))


def scale(term: Sum, factor: int) -> Sum:
    if factor == 0:
        return ZERO
    return Sum(term.constant * factor, tuple((a, f * factor) for a, f in term.parts))


def subtract(left: Sum, right: Sum) -> Sum:
    return add((left, scale(right, -1)))


def multiply(left: Sum, right: Sum) -> Sum:
    """Distributes over sums of at most a few parts, so that products of loop indices and strides stay comparable."""
    if not left.parts:
        return scale(right, left.constant)
    if not right.parts:
        return scale(left, right.constant)
    if len(left.parts) * len(right.parts) > 16:
        return _of(Apply(Fn.MUL, *_ordered(left, right)))
    out = [number(left.constant * right.constant), scale(Sum(0, left.parts), right.constant)]
    out.append(scale(Sum(0, right.parts), left.constant))
    for a, f in left.parts:
        for b, g in right.parts:
            out.append(scale(_of(Apply(Fn.MUL, *_ordered(_of(a), _of(b)))), f * g))
    return add(out)


def _ordered(left: Sum, right: Sum) -> tuple[Sum, Sum]:
    keys = [tuple(map(_key, t.parts)) for t in (left, right)]
    return (left, right) if keys[0] <= keys[1] else (right, left)


def apply(function: Fn, left: Sum, right: Sum) -> Sum:
    """Any function but addition, folded where both operands are constant or a neutral element is met."""
    if function is Fn.MUL:
        return multiply(left, right)
    if not left.parts and not right.parts:
        folded = evaluate(function, left.constant, right.constant)
        if folded is not None:
            return number(folded)
    if function in (Fn.MIN, Fn.MAX) and left == right:
        return left
    if not right.parts:
        simple = _by_constant(function, left, right.constant)
        if simple is not None:
            return simple
    if not left.parts and left.constant == 0 and function in (Fn.AND, Fn.DIV, Fn.REM, Fn.SHL, Fn.SHR):
        return ZERO
    if not left.parts and left.constant == 0 and function in (Fn.OR, Fn.XOR):
        return right
    return _of(Apply(function, left, right))


def _by_constant(function: Fn, left: Sum, right: int) -> Sum | None:
    match function:
        case Fn.DIV | Fn.FLOOR if right == 1:
            return left
        case Fn.REM | Fn.MOD if right in (1, -1):
            return ZERO
        case Fn.OR | Fn.XOR | Fn.SHL | Fn.SHR if right == 0:
            return left
        case Fn.AND:
            return _masked(left, right)
        case Fn.OR:
            return subtract(add((left, number(right))), _masked(left, right))
        case Fn.XOR:
            return subtract(add((left, number(right))), scale(_masked(left, right), 2))
        case Fn.SHL if 0 <= right < 64:
            return scale(left, 1 << right)
        case Fn.SHR if 0 <= right < 64:
            return apply(Fn.FLOOR, left, number(1 << right))
        case _:
            return None


def _masked(term: Sum, mask: int) -> Sum:
    """`term & mask` from its runs of bits, for the two's complement of any width (a negative mask has all high bits)."""
    if mask < 0:
        return subtract(term, _masked(term, ~mask))
    out = []
    low = 0
    while mask >> low:
        if not mask >> low & 1:
            low += 1
            continue
        high = low
        while mask >> high & 1:
            high += 1
        digits = apply(Fn.MOD, apply(Fn.FLOOR, term, number(1 << low)), number(1 << (high - low)))
        out.append(scale(digits, 1 << low))
        low = high
    return add(out)


def evaluate(function: Fn, a: int, b: int) -> int | None:
    """The value of a function of two integers; None where it has none."""
    if function in _SIMPLE:
        return _SIMPLE[function](a, b)
    if function in (Fn.SHL, Fn.SHR):
        if not 0 <= b < 64:
            return None
        return a << b if function is Fn.SHL else a >> b
    if b == 0:
        return None
    if function is Fn.FLOOR:
        return a // b
    if function is Fn.MOD:
        return a % abs(b)
    quotient = abs(a) // abs(b)
    quotient = -quotient if (a < 0) != (b < 0) else quotient
    return quotient if function is Fn.DIV else a - quotient * b


_SIMPLE: dict[Fn, Callable[[int, int], int]] = {
    Fn.MUL: lambda a, b: a * b,
    Fn.MIN: min,
    Fn.MAX: max,
    Fn.AND: lambda a, b: a & b,
    Fn.OR: lambda a, b: a | b,
    Fn.XOR: lambda a, b: a ^ b,
}


def choose(condition: Condition, then: Sum, other: Sum) -> Sum:
    if isinstance(condition, Truth):
        return then if condition.value else other
    return then if then == other else _of(Choose(condition, then, other))


def unknown(name: str, indices: tuple[Sum, ...], low: int | None = None, high: int | None = None) -> Sum:
    return _of(Unknown(name, indices, low, high))


def read(bytes_: int, address: Sum, low: int, high: int) -> Sum:
    return _of(Read(bytes_, address, low, high))


def compare(relation: Relation, left: Sum, right: Sum) -> Condition:
    if left.parts == right.parts:
        d = left.constant - right.constant
        return Truth({Relation.EQ: d == 0, Relation.NE: d != 0, Relation.LT: d < 0, Relation.LE: d <= 0}[relation])
    return Compare(relation, left, right)


def negate(condition: Condition) -> Condition:
    match condition:
        case Truth():
            return Truth(not condition.value)
        case Not():
            return condition.operand
        case Compare():
            left, right = condition.left, condition.right
            match condition.relation:
                case Relation.EQ:
                    return Compare(Relation.NE, left, right)
                case Relation.NE:
                    return Compare(Relation.EQ, left, right)
                case Relation.LT:
                    return Compare(Relation.LE, right, left)
                case Relation.LE:
                    return Compare(Relation.LT, right, left)
        case Both():
            return Either(negate(condition.left), negate(condition.right))
        case Either():
            return Both(negate(condition.left), negate(condition.right))
        case FreeTruth():
            return Not(condition)


def both(left: Condition, right: Condition) -> Condition:
    if isinstance(left, Truth):
        return right if left.value else FALSE
    if isinstance(right, Truth):
        return left if right.value else FALSE
    return left if left == right else Both(left, right)


def either(left: Condition, right: Condition) -> Condition:
    if isinstance(left, Truth):
        return TRUE if left.value else right
    if isinstance(right, Truth):
        return TRUE if right.value else left
    return left if left == right else Either(left, right)


def conjunction(conditions: Iterable[Condition]) -> Condition:
    out: Condition = TRUE
    for condition in conditions:
        out = both(out, condition)
    return out


def as_integer(condition: Condition) -> Sum:
    return choose(condition, ONE, ZERO)
