"""What a loop carries, as a term over the number of its round, where that can be told from one round alone.

A carried value whose next value is itself plus something the loop does not change is `first + round * step`; one whose next
value does not depend on the round before is that value of the round before. Values that change places, as two buffers do, are
what the others start with, by turns.
"""

from __future__ import annotations

from collections.abc import Sequence

from racefree.proof.symbolic.arithmetic import integer
from racefree.proof.symbolic.bounds import Bounder
from racefree.proof.symbolic.replacing import Replacer, leaves
from racefree.proof.symbolic.terms import (
    ZERO,
    Choose,
    Condition,
    Fn,
    Read,
    Relation,
    Sum,
    Term,
    Unknown,
    Var,
    add,
    apply,
    choose,
    compare,
    is_condition,
    multiply,
    number,
    subtract,
    variable,
)

MOST_TURNS = 4


def closed(
    names: Sequence[Var], inits: Sequence[Term | None], nexts: Sequence[Term | None], round_: Var
) -> list[Term | None]:
    """The term of each carried value at round `round_`, or None. `names` stand for the values at the start of a round."""
    known = _by_turns(names, inits, nexts, round_)
    forms: list[Term | None] = [known.get(name) for name in names]
    private = set(names) | {round_}
    changed = True
    while changed:
        changed = False
        for n, (name, init, following) in enumerate(zip(names, inits, nexts, strict=True)):
            if forms[n] is not None or init is None or following is None or is_condition(init):
                continue
            form = _form(name, integer(init), integer(following), round_, private, known)
            if form is not None:
                forms[n] = known[name] = form
                changed = True
    return forms


def _by_turns(
    names: Sequence[Var], inits: Sequence[Term | None], nexts: Sequence[Term | None], round_: Var
) -> dict[Var, Sum]:
    """The terms of values each of which takes the place of another, all round."""
    place = {name: n for n, name in enumerate(names)}
    source = [None if (v := _variable(following)) is None else place.get(v) for following in nexts]
    out: dict[Var, Sum] = {}
    for n, name in enumerate(names):
        turns, at = [n], source[n]
        while at is not None and at not in turns and len(turns) < MOST_TURNS:
            turns.append(at)
            at = source[at]
        first = [integer(i) for i in (inits[t] for t in turns) if i is not None and not is_condition(i)]
        if at != n or len(turns) == 1 or len(first) < len(turns):
            continue
        turn = apply(Fn.MOD, variable(round_), number(len(turns)))
        out[name] = first[-1]
        for k in reversed(range(len(turns) - 1)):
            out[name] = choose(compare(Relation.EQ, turn, number(k)), first[k], out[name])
    return out


def _variable(term: Term | None) -> Var | None:
    """The variable that a term is."""
    if not isinstance(term, Sum) or term.constant or len(term.parts) != 1:
        return None
    ((atom, factor),) = term.parts
    return atom if isinstance(atom, Var) and factor == 1 else None


def _form(name: Var, init: Sum, following: Sum, round_: Var, private: set[Var], known: dict[Var, Sum]) -> Sum | None:
    step = subtract(following, variable(name))
    if step == ZERO:
        return init
    if not _uses_any(step, private, round_):
        return add((init, multiply(variable(round_), step)))
    others = private - {round_} - set(known)
    if _one_unknown(following):
        previous = following
    elif _uses_any(following, others, None):
        return None
    else:
        previous = Replacer(known.get).sum(following)
        if has_unknown(previous):
            return None
    last = Replacer({round_: subtract(variable(round_), number(1))}.get).sum(previous)
    return choose(compare(Relation.EQ, variable(round_), ZERO), init, last)


def _one_unknown(term: Sum) -> bool:
    """A value that something in the round before has found."""
    return (
        not term.constant and len(term.parts) == 1 and isinstance(term.parts[0][0], Unknown) and term.parts[0][1] == 1
    )


def drift(
    name: Var, init: Term | None, following: Term | None, value: Term | None, bounder: Bounder
) -> list[Condition]:
    """That a value without a closed form never rises above what it starts with, or never falls below it.

    So it is where each case of the next value is the present one less (or more) some constant, or such a bound itself.
    """
    if not isinstance(init, Sum) or not isinstance(following, Sum) or not isinstance(value, Sum):
        return []
    falls = rises = True
    for case in _cases(following):
        moved = subtract(case, variable(name))
        low, high = (moved.constant, moved.constant) if not moved.parts else bounder.of(subtract(case, init))
        falls = falls and high is not None and high <= 0
        rises = rises and low is not None and low >= 0
    out = [compare(Relation.LE, value, init)] if falls else []
    return out + ([compare(Relation.LE, init, value)] if rises else [])


def _cases(term: Sum) -> list[Sum]:
    """What a term may be, by the conditions at its root."""
    if len(term.parts) != 1 or term.parts[0][1] != 1 or not isinstance(term.parts[0][0], Choose):
        return [term]
    arms = (term.parts[0][0].then, term.parts[0][0].other)
    return [case for arm in arms for case in _cases(add((arm, number(term.constant))))]


def has_unknown(term: Sum) -> bool:
    return any(not isinstance(leaf, Var | Read) for leaf in leaves(term))


def _uses_any(term: Sum, variables: set[Var], also: Var | None) -> bool:
    return any(leaf in variables or leaf == also or (not isinstance(leaf, Var | Read)) for leaf in leaves(term))
