"""The vocabulary both halves share: where an access stands in the source, what it does, which bytes it touches."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """What an access does to memory."""

    LOAD = "load"
    STORE = "store"
    RMW = "atomic_rmw"
    CAS = "atomic_cas"

    @property
    def writes(self) -> bool:
        """True when the access may change memory (an atomic counts as a write)."""
        return self is not Kind.LOAD

    @property
    def atomic(self) -> bool:
        return self in (Kind.RMW, Kind.CAS)


class Sem(Enum):
    """Memory semantics of an atomic. Plain loads and stores have none."""

    RELAXED = "relaxed"
    ACQUIRE = "acquire"
    RELEASE = "release"
    ACQ_REL = "acq_rel"

    @property
    def acquires(self) -> bool:
        return self in (Sem.ACQUIRE, Sem.ACQ_REL)

    @property
    def releases(self) -> bool:
        return self in (Sem.RELEASE, Sem.ACQ_REL)


class Scope(Enum):
    """The set of threads an atomic is atomic with. Two program instances share GPU and SYSTEM, never CTA."""

    CTA = "cta"
    GPU = "gpu"
    SYSTEM = "sys"

    @property
    def spans_programs(self) -> bool:
        return self is not Scope.CTA


@dataclass(frozen=True, slots=True)
class Site:
    """A source position; `callers` are the call sites it was inlined through, innermost first."""

    file: str
    line: int
    column: int = 0
    function: str = ""
    callers: tuple[Site, ...] = ()


@dataclass(frozen=True, slots=True)
class Dim:
    """`count` positions, `step_bytes` apart (any sign, zero allowed)."""

    step_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class Pattern:
    """The bytes base + sum(step_i * k_i) + [0, elem) for 0 <= k_i < count_i. Empty when some count is 0."""

    base_bytes: int
    elem_bytes: int
    dims: tuple[Dim, ...] = ()
