"""Puts a question to integer sets first, which answer most in a millisecond, and to Z3 where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from racefree.proof.affine.prover import Found, SetProver
from racefree.proof.smt.budget import Budget
from racefree.proof.smt.contents import Contents
from racefree.proof.smt.solving import Answer, Model, ask
from racefree.proof.symbolic.replacing import leaves
from racefree.proof.symbolic.terms import Condition, Read


@dataclass(slots=True)
class Asker:
    """What one launch may ask. `sets` is None to leave integer sets out; `rung` names the strongest tool that was needed.

    `used_contents` becomes true when what tensors held was needed for an answer.
    """

    budget: Budget
    sets: SetProver | None
    used_solver: bool = False
    used_contents: bool = False

    @property
    def rung(self) -> str:
        return "smt" if self.used_solver else "affine"

    def plainly(self, conditions: Sequence[Condition]) -> bool:
        """True when integer sets alone see that the conditions cannot hold together."""
        return self._in_sets(conditions) == "empty"

    def ask(
        self,
        conditions: Sequence[Condition],
        contents: Contents | None,
        *,
        branching: bool = False,
        wants_model: bool = False,
    ) -> tuple[Answer, Model | None]:
        """Whether the conditions can hold together; a model when Z3 found one, for which it is asked more if `wants_model`.

        Integer sets multiply out alternatives, so conditions that have many (`branching`) go to Z3 at once.
        """
        found: Found = "unknown" if branching else self._in_sets(conditions)
        if found == "empty":
            return "unsat", None
        if contents is None or not any(isinstance(leaf, Read) for leaf in leaves(*conditions)):
            return (
                ("sat", None)
                if found == "inhabited" and not wants_model
                else self._solved(ask(conditions, self.budget))
            )
        return self._with_contents(contents.narrowed(conditions), contents, wants_model=wants_model)

    def _with_contents(
        self, conditions: Sequence[Condition], contents: Contents, *, wants_model: bool
    ) -> tuple[Answer, Model | None]:
        premises, complete = contents.premises(conditions)
        found = self._in_sets([*conditions, *premises])
        if found == "empty":
            self.used_contents = True
            return "unsat", None
        settled = found == "inhabited" and complete
        if settled and not wants_model:
            return "sat", None
        lemmas = [] if settled else contents.lemmas(conditions)
        if lemmas and ask([*conditions, *lemmas], self.budget, contents=contents, listed=False)[0] == "unsat":
            self.used_contents = True
            return self._solved(("unsat", None))
        answered = ask(conditions, self.budget, contents=contents)
        self.used_contents = self.used_contents or answered[0] == "unsat"
        return self._solved(answered)

    def never(self, conditions: Sequence[Condition], contents: Contents | None) -> bool:
        """True when the conditions cannot hold together, for sure."""
        return self.ask(conditions, contents)[0] == "unsat"

    def _in_sets(self, conditions: Sequence[Condition]) -> Found:
        if self.sets is None or not self.budget.next_query():
            return "unknown"
        found, steps = self.sets.ask(conditions, seconds=self.budget.left_ms() / 1000)
        self.budget.spend(steps)
        return found

    def _solved(self, found: tuple[Answer, Model | None]) -> tuple[Answer, Model | None]:
        self.used_solver = self.used_solver or found[0] == "unsat"
        return found
