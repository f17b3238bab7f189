"""Puts a question to integer sets first, which answer most in a millisecond, and to Z3 where they do not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from racefree.proof.affine import SetProver
from racefree.proof.smt.budget import Budget
from racefree.proof.smt.contents import Contents
from racefree.proof.smt.solving import Answer, Model, ask
from racefree.proof.symbolic.terms import Condition


@dataclass(slots=True)
class Asker:
    """What one launch may ask. `sets` is None to leave integer sets out; `rung` names the strongest tool that was needed."""

    budget: Budget
    sets: SetProver | None
    used_solver: bool = False

    @property
    def rung(self) -> str:
        return "smt" if self.used_solver else "affine"

    def plainly(self, conditions: Sequence[Condition]) -> bool:
        """True when integer sets alone see that the conditions cannot hold together."""
        return self.sets is not None and self.sets.never(conditions, seconds=self.budget.left_ms() / 1000)

    def ask(
        self, conditions: Sequence[Condition], contents: Contents | None, *, branching: bool = False
    ) -> tuple[Answer, Model | None]:
        """Whether the conditions can hold together; a model when Z3 found one.

        Integer sets multiply out alternatives, so conditions that have many (`branching`) go to Z3 at once.
        """
        if not branching and self.plainly(conditions):
            return "unsat", None
        if contents is not None:
            lemmas = contents.lemmas(conditions)
            if lemmas and ask([*conditions, *lemmas], self.budget, contents=contents, listed=False)[0] == "unsat":
                self.used_solver = True
                return "unsat", None
        answer, model = ask(conditions, self.budget, contents=contents)
        self.used_solver = self.used_solver or answer == "unsat"
        return answer, model

    def never(self, conditions: Sequence[Condition], contents: Contents | None) -> bool:
        """True when the conditions cannot hold together, for sure."""
        return self.ask(conditions, contents)[0] == "unsat"
