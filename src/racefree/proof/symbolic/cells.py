"""What a symbolic reading knows of a value and of the place a statement stands at."""

from __future__ import annotations

from dataclasses import dataclass, replace

from racefree.graph.program import Element, Int, Op, Ptr
from racefree.proof.symbolic.arithmetic import integer, truth
from racefree.proof.symbolic.records import Loop, Obligation, Place
from racefree.proof.symbolic.terms import TRUE, Condition, Sum, Term, both, choose, either, negate
from racefree.proof.symbolic.tiles import MOVERS


@dataclass(frozen=True, slots=True)
class Cell:
    """What is known of a value: its term (None: no integer), what must fit, and the reads lane i depends on at lane i."""

    term: Term | None
    obligations: frozenset[Obligation] = frozenset()
    reads: frozenset[int] = frozenset()


NOTHING = Cell(None)


@dataclass(frozen=True, slots=True)
class Around:
    """What surrounds a statement: its path, the obligations of that path, its loops and its place."""

    path: Condition = TRUE
    obligations: frozenset[Obligation] = frozenset()
    loops: tuple[Loop, ...] = ()
    place: Place = ()


@dataclass(frozen=True, slots=True)
class Passed:
    """What is known once some statements lie behind: waiting loops among them have ended."""

    condition: Condition = TRUE
    obligations: frozenset[Obligation] = frozenset()

    def behind(self, around: Around) -> Around:
        if self.condition == TRUE:
            return around
        return replace(
            around, path=both(around.path, self.condition), obligations=around.obligations | self.obligations
        )

    def then(self, later: Passed) -> Passed:
        return Passed(both(self.condition, later.condition), self.obligations | later.obligations)

    def only_if(self, held: Condition) -> Passed:
        return Passed(either(negate(held), self.condition), guarded(self.obligations, held))


def width(element: Element | object) -> int:
    match element:
        case Int():
            return element.bits
        case Ptr():
            return 64
        case _:
            return 0


def chosen(condition: Condition, then: Term, other: Term) -> Term:
    if isinstance(then, Sum) and isinstance(other, Sum):
        return choose(condition, then, other)
    return either(both(condition, truth(then)), both(negate(condition), truth(other)))


def guarded(obligations: frozenset[Obligation], condition: Condition) -> frozenset[Obligation]:
    return frozenset(replace(o, guard=both(condition, o.guard)) for o in obligations)


def of_arms(then: Cell, other: Cell, held: Condition) -> frozenset[Obligation]:
    """What both arms need is needed anyway; the rest only where its arm is taken."""
    shared = then.obligations & other.obligations
    one, two = then.obligations - shared, other.obligations - shared
    return shared | guarded(one, held) | guarded(two, negate(held))


def select_obligations(cells: list[Cell]) -> frozenset[Obligation]:
    """An arm's obligations hold only where the arm is taken."""
    condition, then, other = cells
    if condition.term is None:
        return condition.obligations | then.obligations | other.obligations
    return condition.obligations | of_arms(then, other, truth(condition.term))


def moved(op: Op, obligation: Obligation, place: int) -> Obligation:
    """The obligation at the lanes an element has been moved to."""
    if len(op.operands) != 1:
        return obligation
    value, guard = MOVERS[op.name](op, [obligation.value]), MOVERS[op.name](op, [obligation.guard])
    if value is None or guard is None:
        return obligation
    return replace(obligation, value=integer(value[place]), guard=truth(guard[place]))
