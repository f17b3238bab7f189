"""A counter that all programs step again and again, and wait for in between: a barrier of the whole grid, used many times.

Between its j-th step and the next a program finds that all have done j. So the first that does its j-th step but one too many
comes when all have done j, and a value of j steps a program says the same: whoever acquires it has acquired from the j-th step
of each program, and from what that published. See `arrivals` for the release sequence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from racefree.access import Kind
from racefree.proof.symbolic.questions import Question, copied, copier, in_grid, own
from racefree.proof.symbolic.records import Await, Loop, Record, constant
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.sync.arrivals import most_that_add
from racefree.proof.symbolic.sync.locations import acquires, changes_nothing, releases
from racefree.proof.symbolic.sync.observing import Observation, observed
from racefree.proof.symbolic.sync.origins import Origins
from racefree.proof.symbolic.sync.publishing import before_a_barrier
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import (
    ONE,
    TRUE,
    ZERO,
    Condition,
    Relation,
    Sum,
    Var,
    VarKind,
    add,
    both,
    compare,
    either,
    multiply,
    negate,
    number,
    scale,
    variable,
)


@dataclass(frozen=True, slots=True)
class Phases:
    """`steps` change the counter, in program order, each once in every round of `loop` (None: once).

    Each adds `size` to what was `initial` before the launch, and at most `most` programs do so. `looks` holds the atomic of the
    loop that waits behind each step; the last has none where nothing follows it.
    """

    steps: tuple[Record, ...]
    looks: tuple[Record, ...]
    loop: Loop | None
    initial: int
    size: int
    most: Sum

    def number_of(self, step: int, round_: Sum) -> Sum:
        """Which of its program's steps it is, counted from 1."""
        return add((scale(round_, len(self.steps)), number(step + 1)))

    def after(self, steps: Sum) -> Sum:
        """What the counter holds when all programs have done so many steps."""
        return add((number(self.initial), scale(multiply(steps, self.most), self.size)))


def phases(setting: Setting, origins: Origins) -> tuple[Phases, ...]:
    found: dict[tuple[Record, ...], Phases | None] = {}
    for record in setting.reading.records:
        steps = origins.changing(record) if _steps(record) else None
        if steps and record in steps and steps not in found:
            found[steps] = _phases(tuple(sorted(steps, key=lambda r: r.order)), setting)
    return tuple(each for each in found.values() if each is not None)


def _steps(record: Record) -> bool:
    is_add = record.access.kind is Kind.RMW and record.access.rmw == "add" and releases(record)
    return is_add and record.mask == TRUE and (constant(record, 0) or 0) > 0


def _phases(steps: tuple[Record, ...], setting: Setting) -> Phases | None:
    """The counter, if its steps are alike and stand in one body, which does all of them, and programs wait in between."""
    first, size = steps[0], constant(steps[0], 0)
    initial, loops = setting.initial(first), first.loops
    if initial is None or size is None or not all(_same_for_all(leaf) for leaf in leaves(first.address)):
        return None
    if any(not _steps(s) or constant(s, 0) != size for s in steps) or len({s.access.element_bytes for s in steps}) > 1:
        return None
    if any((s.address, s.place, s.loops) != (first.address, first.place, loops) for s in steps):
        return None
    if len(loops) > 1 or (loops and not (loops[0].exact and first.place[-1] == (loops[0].number, 0))):
        return None
    loop = loops[0] if loops else None
    if _wraps(initial, size, steps, loop, setting):
        return None
    looks: list[Record] = []
    counter = Phases(steps, (), loop, initial, size, most_that_add(first, setting))
    round_ = ZERO if loop is None else variable(loop.iteration)
    for which, step in enumerate(steps):
        until = steps[which + 1].order if which + 1 < len(steps) else None
        look = _look(step, until, counter.after(counter.number_of(which, round_)), setting)
        if look is None and (until is not None or loop is not None):
            return None
        looks += [] if look is None else [look]
    return replace(counter, looks=tuple(looks))


def _same_for_all(leaf: object) -> bool:
    """Whether all executions of all programs see one value."""
    return isinstance(leaf, Var) and leaf.kind in (VarKind.BASE, VarKind.PARAMETER, VarKind.GRID)


def _wraps(initial: int, size: int, steps: tuple[Record, ...], loop: Loop | None, setting: Setting) -> bool:
    """Whether the counter might not hold all the steps of a grid as large as proofs for any grid reach without a qualifier."""
    rounds = 1 if loop is None else loop.iteration.high
    if rounds is None:
        return True
    most = size * setting.programs * len(steps) * (rounds + 1)
    return initial + most >= 1 << (8 * steps[0].access.element_bytes - 1)


def _look(step: Record, until: int | None, enough: Sum, setting: Setting) -> Record | None:
    """The atomic of a loop in the same body, behind the step and before `until`, that goes on until there is enough."""
    for waiting in setting.reading.awaits:
        if waiting.place != step.place:
            continue
        for seen in observed((waiting.done,), setting.reading):
            poll = seen.atomic
            rounds = tuple(variable(loop.iteration) for loop in step.loops)
            inside = bool(poll.loops) and poll.loops[-1].number == waiting.number and seen.rounds[:-1] == rounds
            between = step.order < poll.order and (until is None or poll.order < until)
            there = seen.address == step.address and poll.access.element_bytes == step.access.element_bytes
            reads = acquires(poll) and changes_nothing(poll) and poll.mask == TRUE
            if inside and between and there and reads and _waits(waiting, seen.value, enough, setting):
                return poll
    return None


def _waits(waiting: Await, value: Sum, enough: Sum, setting: Setting) -> bool:
    less = compare(Relation.LT, value, enough)
    return setting.never([*in_grid(setting.domain, 1), *map(copier(1).condition, (waiting.path, waiting.done, less))])


# ---- what follows from it ----------------------------------------------------------------------------------------------


def unordered(question: Question, found: Sequence[Phases], setting: Setting) -> list[Condition]:
    """What the steps say if neither execution happens before the other."""
    if question.same_program:
        return []
    out = []
    for counter in found:
        for before, a, after, b in ((question.first, 1, question.second, 2), (question.second, 2, question.first, 1)):
            published = _published(before, a, counter, setting)
            acquired = None if published is None else _acquired(published, after, b, counter)
            if published is not None and acquired is not None:
                out.append(negate(both(published.happens, acquired)))
    return [condition for condition in out if condition != TRUE]


def counted(seen: Observation, found: Sequence[Phases], b: int) -> Condition:
    """What a look finds is less than what there is when all have done the step behind it: its own program has not."""
    out: Condition = TRUE
    for counter in found:
        for which, look in enumerate(counter.looks):
            if seen.atomic is look:
                round_ = ZERO if counter.loop is None else seen.rounds[0]
                most = counter.after(add((counter.number_of(which, round_), ONE)))
                out = both(out, either(negate(seen.executed), compare(Relation.LT, seen.value, most)))
    return copier(b).condition(out)


@dataclass(frozen=True, slots=True)
class _Step:
    """The step `which` of a program in a round (0 without a loop), if it `happens`."""

    which: int
    round: Sum
    happens: Condition


def _published(record: Record, copy: int, counter: Phases, setting: Setting) -> _Step | None:
    """The first step that publishes an execution of `record`."""
    loop = counter.loop
    within = loop is not None and bool(record.loops) and record.loops[0].number == loop.number
    round_ = own(record.loops[0].iteration, copy) if within else ZERO
    for which, step in enumerate(counter.steps):
        if before_a_barrier(record, step, setting):
            return _Step(which, round_, _at(step.path, counter, copy, round_))
    if loop is None or not within or not _fenced_going_round(record, counter, setting):
        return None
    following = add((round_, ONE))
    return _Step(0, following, _at(counter.steps[0].path, counter, copy, following))


def _at(path: Condition, counter: Phases, copy: int, round_: Sum) -> Condition:
    """A condition of the body of the counter's steps, in a round."""
    named = copier(copy).condition(path)
    if counter.loop is None:
        return named
    return Replacer({copied(counter.loop.iteration, copy): round_}.get).condition(named)


def _fenced_going_round(record: Record, counter: Phases, setting: Setting) -> bool:
    """Whether all lanes are done with `record` when one thread does the first step of the next round."""
    if setting.model.barrier_before_release or (record.access.shape == () and record.access.kind.writes):
        return True
    first = counter.steps[0]
    return any(
        fence.place == first.place and (fence.order < first.order or record.order < fence.order)
        for fence in setting.reading.fences
    )


def _acquired(published: _Step, record: Record, copy: int, counter: Phases) -> Condition | None:
    """When an execution of `record` comes after a look that has found this step done by all."""
    place = counter.steps[0].place
    loop = counter.loop
    done = sum(look.order < record.order for look in counter.looks)
    if loop is None:
        within = record.place[: len(place)] == place
        return TRUE if within and published.which < done else None
    if record.loops and record.loops[0].number == loop.number:
        if record.place[: len(place)] != place:
            return None
        passed = add((scale(own(record.loops[0].iteration, copy), len(counter.steps)), number(done)))
        return compare(Relation.LE, counter.number_of(published.which, published.round), passed)
    if done == len(counter.looks) and record.place[: len(place) - 1] == place[:-1]:
        return _at(loop.runs, counter, copy, published.round)
    return None
