"""A counter that programs add one step to, each once: a value says how many have come, and all that came had released.

Every access that may change the counter is the same releasing addition, so the additions form one release sequence: whoever
acquires from the counter has acquired from each addition before. If a program is not among those, fewer have come.

The program that draws the last number may also write the counter, as kernels do that leave it ready for the next launch: by
then all have come, so nobody draws what it has left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from racefree.access import Kind
from racefree.proof.symbolic.questions import Question, copier, in_grid, own
from racefree.proof.symbolic.records import Record, constant
from racefree.proof.symbolic.replacing import leaves
from racefree.proof.symbolic.sync.locations import acquires, changes_nothing, may_change, releases, same_bytes
from racefree.proof.symbolic.sync.observing import Observation, observations
from racefree.proof.symbolic.sync.publishing import published
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import (
    FALSE,
    ONE,
    TRUE,
    Condition,
    Relation,
    Sum,
    Unknown,
    Var,
    VarKind,
    both,
    compare,
    conjunction,
    either,
    multiply,
    negate,
    number,
    scale,
    subtract,
    unknown,
    variable,
)
from racefree.proof.symbolic.variables import grid_size, program_id


@dataclass(frozen=True, slots=True)
class Counter:
    """`add` is the one access that changes it, by `step`. `first` is what it holds before the launch, or None; at most `most`
    programs add to one location. `reset`: the last of them may change it once more, so others than `add` may find anything."""

    add: Record
    step: int
    first: int | None
    most: Sum
    reset: bool = False


def counters(setting: Setting) -> tuple[Counter, ...]:
    found = (_counter(record, setting) for record in setting.reading.records)
    return tuple(counter for counter in found if counter is not None)


def _counter(record: Record, setting: Setting) -> Counter | None:
    if record.access.kind is not Kind.RMW or record.access.rmw != "add" or not releases(record) or record.loops:
        return None
    step = constant(record, 0)
    if step is None or step <= 0 or record.mask != TRUE or not same_bytes(record, record):
        return None
    if setting.wraps(record, step):
        return None
    others = [other for other in may_change(record, setting) if other is not record]
    counter = Counter(record, step, setting.initial(record), most_that_add(record, setting), reset=bool(others))
    return counter if all(_by_the_last(other, counter, setting) for other in others) else None


def _by_the_last(record: Record, counter: Counter, setting: Setting) -> bool:
    """Whether only a program that has drawn the last number does this, and only to the counter it has drawn from."""
    add, names = counter.add, copier(1)
    if counter.first is None or add.access.result is None or not same_bytes(record, add):
        return False
    happens = [*in_grid(setting.domain, 1), names.condition(both(record.path, record.mask)), _in_range(counter, 1)]
    another = compare(Relation.LT, _come(counter, 1), _last(counter))
    elsewhere = names.condition(compare(Relation.NE, record.address, add.address))
    return all(setting.never([*happens, each]) for each in (another, elsewhere))


def _come(counter: Counter, copy: int) -> Sum:
    """How far the counter had got when the program of a copy drew from it."""
    assert counter.first is not None
    return subtract(copier(copy).sum(_drawn(counter.add)), number(counter.first))


def _last(counter: Counter) -> Sum:
    return scale(subtract(counter.most, ONE), counter.step)


def _in_range(counter: Counter, copy: int) -> Condition:
    come = _come(counter, copy)
    return both(compare(Relation.LE, number(0), come), compare(Relation.LE, come, _last(counter)))


def most_that_add(add: Record, setting: Setting) -> Sum:
    """How many programs add to one location, at most: those that differ along the axes its address leaves open."""
    one, other = copier(1), copier(2)
    apart = [
        one.condition(add.path),
        other.condition(add.path),
        *in_grid(setting.domain, 1),
        *in_grid(setting.domain, 2),
    ]
    meet = compare(Relation.EQ, one.sum(add.address), other.sum(add.address))
    out = ONE
    for axis in range(3):
        if axis not in setting.domain.axes:
            continue
        fixed = compare(Relation.NE, own(program_id(axis), 1), own(program_id(axis), 2))
        if not setting.never([meet, fixed, *apart]):
            out = multiply(out, variable(grid_size(axis)))
    for corner in _corners(add, setting):
        if setting.never([one.condition(add.path), *in_grid(setting.domain, 1), corner]):
            return subtract(out, ONE)
    return out


def _corners(add: Record, setting: Setting) -> list[Condition]:
    """The first program and the last of those that share the one location: one of them often only waits."""
    places = {leaf for leaf in leaves(add.address) if isinstance(leaf, Var) and leaf.kind is VarKind.PROGRAM}
    if len(setting.domain.axes) != 1 or places or any(isinstance(leaf, Unknown) for leaf in leaves(add.address)):
        return []
    (axis,) = setting.domain.axes
    pid = own(program_id(axis), 1)
    last = subtract(variable(grid_size(axis)), ONE)
    return [compare(Relation.EQ, pid, number(0)), compare(Relation.EQ, pid, last)]


def unordered(question: Question, found: Sequence[Counter], setting: Setting) -> list[Condition]:
    """What the counters say if neither execution happens before the other."""
    if question.same_program:
        return []
    out = []
    for counter in found:
        if counter.reset:  # else a ticket, whose numbers are known to differ
            out.append(_drawn_apart(counter))
        for before, a, after, b in (
            (question.first, 1, question.second, 2),
            (question.second, 2, question.first, 1),
        ):
            if before is not counter.add and published(before, counter.add, setting, (a, a)) == FALSE:
                continue
            for seen in _looks(after, counter, setting):
                out.append(_missed(seen, counter, a, b))
    return out


def counted(seen: Observation, found: Sequence[Counter], setting: Setting, b: int) -> Condition:
    """What is found in a counter is what it held before the launch, and at most one step more for each program."""
    names = copier(b)
    out: Condition = TRUE
    for counter in found:
        if counter.first is None or not _is_on(seen, counter, setting):
            continue
        there = compare(Relation.EQ, seen.address, counter.add.address)
        come = subtract(seen.value, number(counter.first))
        most = both(
            compare(Relation.LE, number(0), come), compare(Relation.LE, come, scale(counter.most, counter.step))
        )
        out = both(out, names.condition(either(negate(both(seen.executed, there)), most)))
    return out


def _is_on(seen: Observation, counter: Counter, setting: Setting) -> bool:
    if seen.atomic is counter.add or counter.reset:
        return seen.atomic is counter.add
    low, high = sorted((seen.atomic.access.index, counter.add.access.index))
    return changes_nothing(seen.atomic) and (low, high) in setting.may_meet


def _drawn_apart(counter: Counter) -> Condition:
    """Two programs that draw from one counter draw different numbers, none beyond the last."""
    one, other = copier(1), copier(2)
    drawn, place = _drawn(counter.add), counter.add.address
    both_there = conjunction(
        (
            one.condition(counter.add.path),
            other.condition(counter.add.path),
            compare(Relation.EQ, one.sum(place), other.sum(place)),
        )
    )
    apart = compare(Relation.NE, one.sum(drawn), other.sum(drawn))
    return either(negate(both_there), conjunction((apart, _in_range(counter, 1), _in_range(counter, 2))))


def _missed(seen: Observation, counter: Counter, a: int, b: int) -> Condition:
    """The value found leaves out the program of copy `a`."""
    add, mine, theirs = counter.add, copier(b), copier(a)
    value = mine.sum(seen.value)
    both_there = conjunction(
        (
            mine.condition(seen.executed),
            theirs.condition(add.path),
            compare(Relation.EQ, mine.sum(seen.address), theirs.sum(add.address)),
        )
    )
    draws = seen.atomic is add
    facts: Condition = TRUE
    if counter.first is not None:
        come = subtract(value, number(counter.first))
        others = subtract(counter.most, number(2 if draws else 1))
        facts = both(compare(Relation.LE, number(0), come), compare(Relation.LE, come, scale(others, counter.step)))
    if draws:
        drawn = theirs.sum(_drawn(add))
        facts = both(facts, compare(Relation.LT, value, drawn))
        if counter.first is not None:
            last = scale(subtract(counter.most, ONE), counter.step)
            facts = both(facts, compare(Relation.LE, subtract(drawn, number(counter.first)), last))
    return either(negate(both_there), facts)


def _drawn(add: Record) -> Sum:
    assert add.access.result is not None
    bits = 8 * add.access.element_bytes
    return unknown(f"v{add.access.result.index}", (), -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _looks(record: Record, counter: Counter, setting: Setting) -> list[Observation]:
    """The acquiring atomics on the counter that all lanes of `record` come after."""
    found = observations(record, setting.reading)
    out = [seen for seen in found if acquires(seen.atomic) and _is_on(seen, counter, setting)]
    add = counter.add
    if add.access.result is not None and acquires(add) and _after_a_barrier(record, add, setting):
        seen = Observation(add, _drawn(add), add.address, both(add.path, add.mask), ())
        if not any(isinstance(o.value.parts[0][0], Unknown) and o.atomic is add for o in out):
            out.append(seen)
    return out


def _after_a_barrier(record: Record, acquire: Record, setting: Setting) -> bool:
    if record.order <= acquire.order:
        return False
    return setting.model.barrier_after_acquire or any(
        acquire.order < fence.order < record.order and record.place[: len(fence.place)] == fence.place
        for fence in setting.reading.fences
    )
