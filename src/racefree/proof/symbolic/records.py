"""One record per access: its address, when it happens, what must not overflow, and what orders it inside its program."""

from __future__ import annotations

from dataclasses import dataclass

from racefree.access import Site
from racefree.graph.program import Access
from racefree.proof.symbolic.terms import TRUE, Condition, Sum, Term, Var

Place = tuple[tuple[int, int], ...]
"""Where a statement stands: (number of the enclosing statement, which of its bodies), outermost first."""


@dataclass(frozen=True, slots=True)
class Obligation:
    """`value` must lie in [low, high] where `guard` holds, or an integer of `bits` bits wraps.

    `earlier`: in any round before, so that it narrows down nothing about the present one.
    """

    bits: int
    value: Sum
    low: int
    high: int
    guard: Condition = TRUE
    earlier: bool = False


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop around an access: `iteration` counts its rounds from 0, `runs` says that this round happens.

    `number` is the number of the loop statement (see `Place`); `exact` unless `runs` leaves the round count open.
    """

    number: int
    iteration: Var
    runs: Condition
    exact: bool


@dataclass(frozen=True, slots=True)
class Record:
    """One access, for any program instance, lane and iteration.

    `address` counts bytes from 0; a pointer parameter's base is a variable. `active` is path, loop ranges and mask in one.
    `path` is the same without the mask. `lanes` names the lane variable of each dimension of the tile (None: extent 1).
    Accesses whose result the address, mask or stored value of the same lane depends on in the same iteration are in
    `depends`. `exact` is false when `active` or the address contains something unknown, so that a model need not be real.
    `order` numbers accesses and barriers in program order. `written` are the values it writes, where they are integers.
    """

    access: Access
    address: Sum
    mask: Condition
    path: Condition
    loops: tuple[Loop, ...]
    lanes: tuple[Var | None, ...]
    depends: frozenset[int]
    obligations: frozenset[Obligation]
    place: Place
    order: int
    written: tuple[Term | None, ...] = ()


def spans_programs(record: Record) -> bool:
    """Whether the access is an atomic that all programs see as one."""
    access = record.access
    return access.kind.atomic and access.scope is not None and access.scope.spans_programs


def constant(record: Record, which: int) -> int | None:
    """What the access writes, where that is one number."""
    term = record.written[which]
    return term.constant if isinstance(term, Sum) and not term.parts else None


def in_loops_of(record: Record, other: Record) -> bool:
    """Whether all loops around `other` are around `record` too."""
    mine, theirs = ([loop.number for loop in r.loops[: len(other.loops)]] for r in (record, other))
    return mine == theirs


@dataclass(frozen=True, slots=True)
class Fence:
    """A barrier with both global bits. `loops` are the numbers of the loops around it, outermost first."""

    order: int
    place: Place
    loops: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Await:
    """A loop that waits for what an atomic finds: `going` is its condition in any round, `done` that it fails in round `exit`.

    `path` and `place` are those of the loop itself, `number` is its number (see `Place`).
    """

    number: int
    exit: Var
    going: Condition
    done: Condition
    path: Condition
    place: Place


@dataclass(frozen=True, slots=True)
class Reading:
    """The whole program: records, fences, waiting loops, the grid axes it reads an id or a size of, and user assumptions."""

    records: tuple[Record, ...]
    fences: tuple[Fence, ...]
    axes: frozenset[int]
    assumptions: tuple[tuple[Condition, Site], ...]
    awaits: tuple[Await, ...] = ()
