"""What the engine checker answers: plain records with names, ready for a report or for JSON."""

from __future__ import annotations

from dataclasses import dataclass

from racefree.access import Pattern
from racefree.errors import Refusal
from racefree.verdict import SourceLine, Status

IN_ORDER_COMPLETION = "assumes that each queue completes in order"
ONE_AT_A_TIME = "assumes that each queue transfers one at a time"
COMPILER_EXEMPTIONS = "uses the compiler's exemptions"


@dataclass(frozen=True, slots=True)
class Reached:
    """The address `at` as a pattern comes to it: its element at `indices`, one for each dim, and `inside` bytes into it."""

    pattern: Pattern
    indices: tuple[int, ...]
    inside: int
    at: int


@dataclass(frozen=True, slots=True)
class EngineAccess:
    """One side of a race. `clock` counts, per engine of the program, the steps known to be under way when it
    starts.

    `instruction` is the place in the document, `iteration` that of its loop (0 for the first or outside loops).
    `reached_byte` and `reached_partition` say how the access comes to the shared byte; None where it is not known, or where
    the memory has no partitions.
    """

    instruction: int
    name: str
    opcode: str
    engine: str
    queue: str | None
    block: str
    iteration: int
    write: bool
    buffer: str
    memory: str
    clock: tuple[int, ...]
    source: SourceLine | None = None
    reached_byte: Reached | None = None
    reached_partition: Reached | None = None


@dataclass(frozen=True, slots=True)
class EngineRace:
    """Two accesses that share a byte, at least one a write, and that no order separates.

    `race_type` is "WAW", "RAW" or "WAR", `first` comes first in the document (or in an earlier iteration). `byte` is an
    address of the memory (within the partition on chip), `partition` and `bank` are None where the memory has none.
    `last_ordered` names the last instruction of the first side's engine that must be complete when the second side starts,
    `first_ordered` the first one of the second side's engine that starts only after the first side: the nearest
    synchronisation on each side. `queue_order_only`: queues that complete in order would separate the accesses.
    `hidden_by` lists the rules by which the compiler's own checker would not report this race.
    """

    race_type: str
    first: EngineAccess
    second: EngineAccess
    byte: int | None
    partition: int | None
    bank: int | None
    last_ordered: str | None
    first_ordered: str | None
    reason: str
    queue_order_only: bool = False
    hidden_by: tuple[str, ...] = ()
    distance: int = 0


@dataclass(frozen=True, slots=True)
class MissingEdge:
    """`target` has to start after `source` completed; `distance` iterations later in a loop."""

    source: str
    target: str
    source_engine: str
    target_engine: str
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A wait or a dependency that the two orders see differently.

    `kind` is one of "released-too-early", "over-waited", "wrong-producer", "no-update", "later-producer",
    "stale-after-loop", "missing-wait" and "deadlock".
    """

    kind: str
    instruction: str
    producer: str | None
    semaphore: str | None
    message: str
    source: SourceLine | None = None


@dataclass(frozen=True, slots=True)
class OrderVerdict:
    """The verdict under one order ("dependencies" or "semaphores").

    `race_count` counts racing pairs of instructions (per loop distance); `races` may list fewer. `possible` are pairs that
    race only if addresses known at run time meet; with one, the status is not `ok`. `excused` are reads marked as allowed
    to see memory that nothing wrote. Adding `missing_edges` makes the program clean, and none of them can be left out.
    """

    order: str
    status: Status
    races: tuple[EngineRace, ...] = ()
    race_count: int = 0
    possible: tuple[EngineRace, ...] = ()
    possible_count: int = 0
    excused: tuple[EngineRace, ...] = ()
    missing_edges: tuple[MissingEdge, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    qualifiers: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class EngineVerdict:
    """The verdict on one program: `races` if any order has a race, else `unsupported` if any is, else `ok`."""

    program: str
    status: Status
    orders: tuple[OrderVerdict, ...]
    disagreements: tuple[Disagreement, ...] = ()
    instructions: int = 0
    engines: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def refusals(self) -> tuple[Refusal, ...]:
        return tuple(refusal for order in self.orders for refusal in order.refusals)

    @property
    def qualifiers(self) -> tuple[str, ...]:
        return tuple(sorted({qualifier for order in self.orders for qualifier in order.qualifiers}))
