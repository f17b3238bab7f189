"""Why two programs that meet through atomics are not ordered by them: which half of the hand-over is missing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

from racefree.access import Kind
from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Access, Barrier, Guard, If, Program, Statement, children
from racefree.proof.memory_model import memory_model
from racefree.proof.outcome import Witness
from racefree.proof.replay.memory import pointer_roots
from racefree.verdict import Cause


@dataclass(frozen=True, slots=True)
class _Placed:
    """A statement with its place in program order and the branches it stands in."""

    statement: Statement
    order: int
    branches: tuple[tuple[int, int], ...]


def meeting_hint(program: Program, facts: LaunchFacts, race: Witness) -> tuple[Cause, str] | None:
    """What the hand-over from the program that is done to the one that follows lacks; None when there is none."""
    if race.first.access.kind.atomic or race.second.access.kind.atomic:
        return None
    placed = list(_placed(program.body, ()))
    sides = (race.first.access, race.second.access)
    for one, other in (sides, sides[::-1]):
        if one.kind is Kind.STORE:
            found = _between(program, facts, placed, race, one, other)
            if found is not None:
                return found
    return None


def _between(
    program: Program, facts: LaunchFacts, placed: list[_Placed], race: Witness, done: Access, later: Access
) -> tuple[Cause, str] | None:
    """Looks at the first atomic after the access that is done, and the last one before the later access."""
    roots = pointer_roots(program)
    give = next((p for p in _atomics(placed, done) if p.order > _order(placed, done)), None)
    takes = [p for p in _atomics(placed, later) if p.order < _order(placed, later)]
    if give is None or not takes:
        return None
    take = takes[-1]
    given, taken = give.statement, take.statement
    if not isinstance(given, Access) or not isinstance(taken, Access) or not roots[given.index]:
        return None
    if roots[given.index] != roots[taken.index]:
        return None
    for atomic in (given, taken):
        if atomic.scope is not None and not atomic.scope.spans_programs:
            return Cause.NARROW_SCOPE, f'the atomic of {line_of(atomic, race)} has scope="cta": give it scope="gpu"'
    if given.sem is not None and not given.sem.releases:
        return Cause.MISSING_RELEASE, _weak(given, "release", f"after the store of {line_of(done, race)}", race)
    if taken.sem is not None and not taken.sem.acquires:
        where = f"before the {later.kind.value} of {line_of(later, race)}"
        return Cause.MISSING_ACQUIRE, _weak(taken, "acquire", where, race)
    if memory_model(facts.triton_version, facts.target).barrier_before_release:
        return None
    after, before = _order(placed, done), give.order
    if any(isinstance(p.statement, Barrier) and after < p.order < before for p in placed):
        return None
    where = f"between the store of {line_of(done, race)} and the release of {line_of(given, race)}"
    return Cause.RELEASE_WITHOUT_BARRIER, f"one thread releases for all: put tl.debug_barrier() {where}"


def _weak(atomic: Access, wanted: str, where: str, race: Witness) -> str:
    sem = atomic.sem.value if atomic.sem is not None else "relaxed"
    both = "acq_rel" if sem in ("acquire", "release") else wanted
    return f'the atomic of {line_of(atomic, race)} {where} has sem="{sem}": give it sem="{both}"'


def line_of(access: Access, race: Witness) -> str:
    """The line of an access; with its file where that is not the one of the race."""
    beside = "" if access.site.file == race.first.access.site.file else f" of {PurePath(access.site.file).name}"
    return f"line {access.site.line}{beside}"


def _placed(body: tuple[Statement, ...], branches: tuple[tuple[int, int], ...]) -> Iterator[_Placed]:
    order = 0

    def visit(body: tuple[Statement, ...], branches: tuple[tuple[int, int], ...]) -> Iterator[_Placed]:
        nonlocal order
        for statement in body:
            own = order
            yield _Placed(statement, own, branches)
            order += 1
            for side, nested in enumerate(children(statement)):
                inside = (*branches, (own, side)) if isinstance(statement, If | Guard) else branches
                yield from visit(nested, inside)

    yield from visit(body, branches)


def _atomics(placed: list[_Placed], access: Access) -> Iterator[_Placed]:
    """The atomics that run whenever the access does."""
    own = next(p.branches for p in placed if p.statement is access)
    for p in placed:
        if isinstance(p.statement, Access) and p.statement.kind.atomic and own[: len(p.branches)] == p.branches:
            yield p


def _order(placed: list[_Placed], access: Access) -> int:
    return next(p.order for p in placed if p.statement is access)
