"""What racefree answers: a status, the scope of a proof, its qualifiers, the races found, the refusals."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import Any

from racefree.access import Site
from racefree.errors import Refusal


class Status(str, Enum):
    """`ok` is a promise; `races` is re-checked; `unsupported` and `vacuous` claim nothing."""

    OK = "ok"
    RACES = "races"
    UNSUPPORTED = "unsupported"
    VACUOUS = "vacuous"


class ProofScope(str, Enum):
    """For which launches a proof holds, strongest first."""

    ANY_PARAMS_ANY_GRID = "any-params-any-grid"
    THIS_PARAMS_ANY_GRID = "this-params-any-grid"
    THIS_PARAMS_THIS_GRID = "this-params-this-grid"


ASSUMES_TERMINATION = "assumes termination"
READS_CONTENTS = "reads tensor contents"
ONE_THREAD_PER_LANE = "assumes one thread per lane"
REDUCTIONS_SYNCHRONISE = "assumes block-wide reductions synchronise"
REPLICAS_LOAD_FIRST = "assumes replicated loads come before a dependent store"
ASSUMES_IN_BOUNDS = "assumes accesses outside their tensors meet nothing"
ASSUMES_ADDRESSES = "assumes the addresses of this launch"
THREAD_QUALIFIERS = frozenset({ONE_THREAD_PER_LANE, REDUCTIONS_SYNCHRONISE, REPLICAS_LOAD_FIRST})
"""The qualifiers of proofs that depend on how many threads a program instance has."""


def assumes_no_overflow(bits: int) -> str:
    """The qualifier for a proof whose integer arithmetic of this width must not wrap."""
    return f"assumes no i{bits} overflow"


SourceLine = tuple[str, int, str]
"""(file, line, function)"""


@dataclass(frozen=True, slots=True)
class RaceAccess:
    """One side of a race. `element` counts elements from the data pointer of the launch's `tensor`.

    `column` of the source line counts characters from 1, 0 where it is not known. `arithmetic` says how the element came
    about, `pid*32 + lane = 1*32 + 0 = 32`, as equal Python expressions; it is empty where no short formula says it.
    """

    op: str
    write: bool
    atomic: bool
    tensor: str
    source: SourceLine
    element: int | None
    lane: tuple[int, ...] = ()
    iterations: tuple[int, ...] = ()
    address_bytes: int | None = None
    element_bytes: int | None = None
    callers: tuple[Site, ...] = ()
    column: int = 0
    arithmetic: str = ""


class Cause(str, Enum):
    """What a race usually comes from, told from its shape."""

    ALIASED = "aliased arguments"
    ATOMICS_DIFFER = "atomics differ"
    ATOMIC_AND_PLAIN = "atomic and plain"
    DUPLICATE_INDICES = "duplicate indices"
    LANES_SHARE = "lanes share an element"
    LOOP_TOO_LONG = "loop too long"
    MISSING_ACQUIRE = "missing acquire"
    MISSING_BARRIER = "missing barrier"
    MISSING_MASK = "missing mask"
    MISSING_PROGRAM_ID = "missing program id"
    MISSING_RELEASE = "missing release"
    NARROW_SCOPE = "narrow scope"
    RELEASE_WITHOUT_BARRIER = "release without barrier"
    SAME_ADDRESS = "same address"
    SHARED = "shared elements"
    STRIDE_BELOW_BLOCK = "stride below block"
    WANTS_ATOMIC = "wants an atomic"


@dataclass(frozen=True, slots=True)
class CompiledRaceRecord:
    """A race of this launch: two unordered accesses that share a byte. `race_type` is "WAW", "RAW" or "WAR".

    `hint` says what usually mends a race of this `cause`.
    """

    race_type: str
    first: RaceAccess
    second: RaceAccess
    programs: tuple[tuple[int, int, int], tuple[int, int, int]]
    reason: str
    config: dict[str, Any] = field(default_factory=dict)
    witness: str = "confirmed"
    cause: Cause = Cause.SHARED
    hint: str = ""

    def _repr_html_(self) -> str:
        """What a notebook shows for the race."""
        shown: str = import_module("racefree.notebook").of_race(self)
        return shown


class ReplayOutcome(str, Enum):
    """What a run in Triton's interpreter says about a verdict. One that could not be run says nothing."""

    AGREES = "agrees"
    DISAGREES = "disagrees"
    NOT_REPLAYED = "not replayed"


@dataclass(frozen=True, slots=True)
class Replay:
    """The check of a verdict by a run of `programs` instances; `reason` says why there was none, or what disagrees."""

    outcome: ReplayOutcome
    programs: int
    reason: str = ""


@dataclass(frozen=True, slots=True)
class RaceConfigVerdict:
    """The verdict on one autotune config (or on the only one)."""

    config: dict[str, Any]
    status: Status
    rung: str | None = None
    scope: ProofScope | None = None
    qualifiers: tuple[str, ...] = ()
    refusal: Refusal | None = None
    grid_fragile: tuple[CompiledRaceRecord, ...] = ()
    races: tuple[CompiledRaceRecord, ...] = ()
    seconds: float = 0.0
    replay: Replay | None = None


@dataclass(frozen=True, slots=True)
class RaceVerdict:
    """The verdict on one launch: `races` if any config races, else `unsupported`, else `vacuous`, else `ok`."""

    status: Status
    scope: ProofScope | None
    qualifiers: tuple[str, ...]
    configs: tuple[RaceConfigVerdict, ...]
    notes: tuple[str, ...] = ()
    memory_model: str = ""
    seconds: float = 0.0

    def _repr_html_(self) -> str:
        """What a notebook shows for the verdict."""
        shown: str = import_module("racefree.notebook").of_verdict(self)
        return shown
