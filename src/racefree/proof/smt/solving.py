"""One question to Z3: satisfiable with a model, unsatisfiable, or not decided within the budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import z3

from racefree.proof.smt.budget import Budget
from racefree.proof.smt.encoding import Encoding

Answer = Literal["sat", "unsat", "unknown"]


def ask(encoding: Encoding, assertions: Sequence[Any], budget: Budget) -> tuple[Answer, Any]:
    """Whether the assertions can hold together with the encoding's premises; a model if so.

    Raises KeyboardInterrupt when Z3 was stopped from the keyboard.
    """
    steps = budget.next_query()
    if not steps:
        return "unknown", None
    solver = z3.Then("simplify", "purify-arith", "solve-eqs", "propagate-ineqs", "smt", ctx=encoding.context).solver()
    solver.set("rlimit", steps)
    solver.set("timeout", max(1, budget.left_ms()))
    solver.set("random_seed", 0)
    solver.add(*encoding.premises)
    solver.add(*assertions)
    before = _used(solver)
    found = solver.check()
    budget.spend(max(1000, _used(solver) - before))
    if found == z3.unsat:
        return "unsat", None
    if found == z3.sat:
        return "sat", solver.model()
    if "interrupt" in solver.reason_unknown() and "keyboard" in solver.reason_unknown():
        raise KeyboardInterrupt
    return "unknown", None


def _used(solver: Any) -> int:
    statistics = solver.statistics()
    return int(statistics.get_key_value("rlimit count")) if "rlimit count" in list(statistics.keys()) else 0
