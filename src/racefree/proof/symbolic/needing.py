"""What must fit its width for a closed form to be what a loop computes: the integers of every round before.

A form at some round rests on what its own next value needed in each earlier round, on what it starts with, and on all that
the values need which it is computed from, as one of two that change places is from the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from racefree.proof.symbolic.cells import Cell
from racefree.proof.symbolic.records import Obligation
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.terms import Relation, Sum, Term, Var, both, compare, variable
from racefree.proof.symbolic.variables import earlier_than


def needed_before(
    names: Sequence[Var],
    inits: Sequence[Cell],
    nexts: Sequence[Cell],
    forms: Sequence[Term | None],
    round_: Var,
    widths: Sequence[int],
) -> dict[Var, frozenset[Obligation]]:
    """For each carried value with a form, what the form at `round_` rests on beside fitting itself.

    `names` stand for the values at the start of a round in `nexts`; `widths` are theirs in bits.
    """
    resolved = Replacer({n: f for n, f in zip(names, forms, strict=True) if isinstance(f, Sum)}.get)
    kept = {
        name: [o for o in cell.obligations if not _is_form(o, cell, names, bits)]
        for name, cell, bits in zip(names, nexts, widths, strict=True)
    }
    own = {
        name: init.obligations | frozenset(_before(o, name, round_, names, resolved) for o in kept[name])
        for name, init in zip(names, inits, strict=True)
    }
    uses = {name: {v for v in _used(cell, kept[name]) if v in own} for name, cell in zip(names, nexts, strict=True)}
    return {name: frozenset().union(*(own[v] for v in _reached(name, uses))) for name in names}


def at(obligations: frozenset[Obligation], place: Replacer) -> frozenset[Obligation]:
    return frozenset(replace(o, value=place.sum(o.value), guard=place.condition(o.guard)) for o in obligations)


def _is_form(obligation: Obligation, following: Cell, names: Sequence[Var], bits: int) -> bool:
    """Whether it says no more than that the next value itself fits, as the closed form has to in any case."""
    of_value = obligation.value == following.term and obligation.bits == bits
    return of_value and any(leaf in names for leaf in leaves(obligation.value, obligation.guard))


def _before(o: Obligation, name: Var, round_: Var, names: Sequence[Var], resolved: Replacer) -> Obligation:
    """The obligation of the next value, in any round before; one on the way of a sum to the next stands for all such."""
    found = replace(o, value=resolved.sum(o.value), guard=resolved.condition(o.guard))
    value, guard = set(leaves(o.value)), set(leaves(o.guard))
    others = {round_, *names}
    if not guard & others and not value & (others - {name}):
        return found
    earlier = earlier_than(round_)
    place = Replacer({round_: variable(earlier)}.get)
    before = compare(Relation.LT, variable(earlier), variable(round_))
    return replace(found, value=place.sum(found.value), guard=both(before, place.condition(found.guard)), earlier=True)


def _used(following: Cell, kept: Sequence[Obligation]) -> Iterator[Var]:
    terms = [t for o in kept for t in (o.value, o.guard)]
    if following.term is not None:
        terms.append(following.term)
    return (leaf for leaf in leaves(*terms) if isinstance(leaf, Var))


def _reached(name: Var, uses: dict[Var, set[Var]]) -> set[Var]:
    found, waiting = {name}, [name]
    while waiting:
        fresh = uses[waiting.pop()] - found
        found |= fresh
        waiting += fresh
    return found
