"""One question to Z3: satisfiable with a model, unsatisfiable, or not decided within the budget."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import z3

from racefree.proof.smt.budget import Budget
from racefree.proof.smt.contents import Contents
from racefree.proof.smt.encoding import Encoding
from racefree.proof.symbolic.terms import Condition, Sum

Answer = Literal["sat", "unsat", "unknown"]


@dataclass(frozen=True, slots=True)
class Model:
    """Numbers that satisfy a question. `exact` unless something in it was left unconstrained."""

    encoding: Encoding
    model: Any
    exact: bool

    def value(self, term: Sum) -> int:
        return int(self.model.eval(self.encoding.sum(term), model_completion=True).as_long())


def ask(
    conditions: Sequence[Condition], budget: Budget, *, contents: Contents | None = None, listed: bool = True
) -> tuple[Answer, Model | None]:
    """Whether the conditions can hold together, within the bounds of their variables; a model if so.

    `contents` tells what reads yield; unless `listed`, only within which bounds. Every question has its own Z3 context, so
    threads may ask at once. Raises KeyboardInterrupt when Z3 was stopped from the keyboard.
    """
    steps = budget.next_query()
    if not steps:
        return "unknown", None
    try:
        return _ask(conditions, steps, budget, Encoding(contents, listed=listed))
    except z3.Z3Exception as error:
        if _KEYBOARD in str(error):
            raise KeyboardInterrupt from error
        return "unknown", None


_KEYBOARD = "interrupted from keyboard"


def _ask(
    conditions: Sequence[Condition], steps: int, budget: Budget, encoding: Encoding
) -> tuple[Answer, Model | None]:
    asserted = [encoding.condition(c) for c in conditions]
    solver = z3.Then("simplify", "purify-arith", "solve-eqs", "propagate-ineqs", "smt", ctx=encoding.context).solver()
    solver.set("rlimit", steps)
    solver.set("timeout", budget.query_ms())
    solver.set("random_seed", 0)
    solver.add(*encoding.premises, *asserted)
    before = _used(solver)
    found = solver.check()
    _hear_signals()
    budget.spend(max(1000, _used(solver) - before))
    if found == z3.unsat:
        return "unsat", None
    if found == z3.sat:
        return "sat", Model(encoding, solver.model(), exact=not encoding.inexact)
    if _KEYBOARD in solver.reason_unknown():
        raise KeyboardInterrupt
    return "unknown", None


def _hear_signals() -> None:
    """Z3 puts the handler of Ctrl-C back in a way that lets whoever waits go on waiting."""
    if hasattr(signal, "siginterrupt"):
        signal.siginterrupt(signal.SIGINT, True)


def _used(solver: Any) -> int:
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in list(statistics.keys()) else 0
