"""A kernel as structured statements: pure ops, accesses, barriers, and the control flow around them.

Front ends build a `Program`; rungs read it. Values are SSA: every `Value` is defined once, before its uses in program
order. A value defined inside a `Guard` stays visible after it (the control-flow graph guarantees that its users run only
when the guard held); values defined inside `For`, `If` and `While` leave only through `results`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from racefree.access import Kind, Scope, Sem, Site

# ---- types -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Int:
    """A two's complement integer of `bits` (signedness is in the op); i1 is a boolean; `index` is 64 bits."""

    bits: int


@dataclass(frozen=True, slots=True)
class Float:
    bits: int


@dataclass(frozen=True, slots=True)
class Ptr:
    """A global pointer; `pointee_bytes` is the size `addptr` counts in (an i1 is one byte)."""

    pointee_bytes: int


@dataclass(frozen=True, slots=True)
class Opaque:
    """A type no rung computes with (tokens, descriptors, ...)."""

    text: str


Element = Int | Float | Ptr | Opaque


@dataclass(frozen=True, slots=True)
class Value:
    """An SSA value: a tile of `shape` elements, () for a scalar. `index` is unique in its program."""

    index: int
    element: Element
    shape: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Combiner:
    """How a reduction or scan joins two groups of elements: pure operations on scalar integers.

    `arguments` are one element per operand of the earlier group, then of the later one; `results` replace them. Triton asks
    its users for an associative function, and for a reduction lets any two groups meet first.
    """

    arguments: tuple[Value, ...]
    body: tuple[Op, ...]
    results: tuple[Value, ...]


Attribute = int | bool | float | str | tuple[int, ...] | Combiner | None

# ---- statements ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Op:
    """A pure operation with a meaning rungs may compute: `name` is MLIR's (`arith.addi`, `tt.splat`, ...).

    Attributes are plain: `value` of `arith.constant` (an int, or None for a constant that is no integer; a non-splat
    integer constant is the tuple of its elements in row-major order), `predicate` of `arith.cmpi` (its name: "slt", "uge",
    ...), `axis` of `tt.expand_dims` and `tt.get_program_id` (0..2), `start` and `end` of `tt.make_range`,
    `order` (a tuple) of `tt.trans`, `allow_reorder` of `tt.reshape`, `combine` of `tt.reduce` and `tt.scan` (the name of one
    associative operation, or a `Combiner`). A name without a handler is a refusal where it matters.
    """

    name: str
    results: tuple[Value, ...]
    operands: tuple[Value, ...]
    attributes: Mapping[str, Attribute]
    site: Site


@dataclass(frozen=True, slots=True)
class Data:
    """A pure operation whose results are data no rung models (float arithmetic, dot, reduce, ...).

    Its results are unknown values. `lanewise` tells that element (i, j, ...) of each result depends only on the elements at
    the same position of the operands; otherwise any element may depend on any. One without results prints its operands.
    """

    name: str
    results: tuple[Value, ...]
    operands: tuple[Value, ...]
    lanewise: bool
    site: Site


@dataclass(frozen=True, slots=True)
class Access:
    """A load, store or atomic through `pointer` (a scalar or a tile of pointers), one per lane where `mask` holds.

    `index` numbers the accesses of the program in program order, and is the identity of the access. `element_bytes` is the
    size each lane touches. `operands` are the values it writes (stored value; rmw operand; cas compare and new value).
    `result` is what it reads (None for a store). `rmw` is Triton's name of the rmw operation ("add", "fadd", "exch", ...).
    A masked-off lane of a load yields `other`, or an undefined value where there is none.
    """

    index: int
    kind: Kind
    pointer: Value
    mask: Value | None
    operands: tuple[Value, ...]
    result: Value | None
    other: Value | None
    element_bytes: int
    site: Site
    sem: Sem | None = None
    scope: Scope | None = None
    rmw: str | None = None
    volatile: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        return self.pointer.shape


@dataclass(frozen=True, slots=True)
class Barrier:
    """A barrier of one program instance; it orders global memory only when both flags are set."""

    global_read: bool
    global_write: bool
    site: Site


@dataclass(frozen=True, slots=True)
class Assume:
    """`tl.assume(condition)`: trusted from the user, and named in the verdict when a proof uses it."""

    condition: Value
    site: Site


@dataclass(frozen=True, slots=True)
class Guard:
    """Statements that run iff `condition` (a scalar i1) holds: a basic block of unstructured control flow."""

    condition: Value
    body: tuple[Statement, ...]
    site: Site


@dataclass(frozen=True, slots=True)
class If:
    """`results[i]` is `then_yields[i]` where the scalar `condition` holds, else `else_yields[i]`."""

    condition: Value
    then_body: tuple[Statement, ...]
    then_yields: tuple[Value, ...]
    else_body: tuple[Statement, ...]
    else_yields: tuple[Value, ...]
    results: tuple[Value, ...]
    site: Site


@dataclass(frozen=True, slots=True)
class For:
    """`scf.for`: `induction` runs from `lower` by `step` while below `upper`; `carried` start as `inits`.

    Each iteration binds `carried` to the previous `yields`; `results` are the last ones (the inits when no iteration runs).
    Bounds compare signed unless `unsigned`.
    """

    induction: Value
    lower: Value
    upper: Value
    step: Value
    carried: tuple[Value, ...]
    inits: tuple[Value, ...]
    body: tuple[Statement, ...]
    yields: tuple[Value, ...]
    results: tuple[Value, ...]
    unsigned: bool
    site: Site


@dataclass(frozen=True, slots=True)
class While:
    """`scf.while`: run `before` on `before_args` (first the `inits`); if `condition`, run `after` on `forwarded`, repeat.

    `after_args` are bound to `forwarded`, `before_args` to the previous `after_yields`; `results` are the last `forwarded`.
    """

    before_args: tuple[Value, ...]
    inits: tuple[Value, ...]
    before: tuple[Statement, ...]
    condition: Value
    forwarded: tuple[Value, ...]
    after_args: tuple[Value, ...]
    after: tuple[Statement, ...]
    after_yields: tuple[Value, ...]
    results: tuple[Value, ...]
    site: Site


Statement = Op | Data | Access | Barrier | Assume | Guard | If | For | While

# ---- the program -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of the compiled kernel. A descriptor argument has been expanded to pointer, shape and stride parts.

    `name` is the kernel's parameter (dotted for a part or a tuple element), `part` says which part of a descriptor:
    "" (the argument itself, or the base pointer), "shape0", "stride0", ...
    """

    name: str
    value: Value
    divisibility: int = 1
    part: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """One compiled kernel: what every program instance of the launch runs."""

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Statement, ...]
    site: Site
    notes: tuple[str, ...] = field(default=())


def children(statement: Statement) -> tuple[tuple[Statement, ...], ...]:
    """The bodies nested directly in a statement, in program order."""
    match statement:
        case Guard():
            return (statement.body,)
        case For():
            return (statement.body,)
        case If():
            return (statement.then_body, statement.else_body)
        case While():
            return (statement.before, statement.after)
        case _:
            return ()


def walk(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """Every statement of a body and of the bodies nested in it, in program order."""
    for statement in body:
        yield statement
        for nested in children(statement):
            yield from walk(nested)


def rebuilt(body: tuple[Statement, ...], change: Callable[[Statement], Iterable[Statement]]) -> tuple[Statement, ...]:
    """A body in which each statement stands for what `change` makes of it, those of nested bodies first."""

    def inside(statement: Statement) -> Statement:
        match statement:
            case Guard() | For():
                return replace(statement, body=rebuilt(statement.body, change))
            case If():
                then_body, else_body = rebuilt(statement.then_body, change), rebuilt(statement.else_body, change)
                return replace(statement, then_body=then_body, else_body=else_body)
            case While():
                before, after = rebuilt(statement.before, change), rebuilt(statement.after, change)
                return replace(statement, before=before, after=after)
            case Op() | Data() | Access() | Barrier() | Assume():
                return statement
            case _:
                assert_never(statement)

    return tuple(made for statement in body for made in change(inside(statement)))


def accesses(program: Program) -> tuple[Access, ...]:
    """All accesses of a program, in program order."""
    return tuple(s for s in walk(program.body) if isinstance(s, Access))
