"""Asks isl whether conditions can hold together, as the emptiness of an integer set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from racefree.geometry.isl_process import SHARED, IslProcess
from racefree.proof.affine.text import TooLarge, set_text
from racefree.proof.symbolic.terms import Condition

MOST_OPERATIONS = 400_000
"""About half a second of isl, so that a question ends at the same point on every machine."""

ANSWER_SECONDS = 20.0
MOST_REMEMBERED = 4096
STEPS_PER_CHARACTER = 2
STEPS_OF_A_FAILURE = 350_000
"""Measured: a set of 1,500 characters takes 5 ms on a machine on which Z3 takes 700,000 steps a second."""

Found = Literal["empty", "inhabited", "unknown"]


class SetProver:
    """Remembers its answers: kernels ask the same about many of their accesses, and so do configs of one kernel.

    `answer_seconds` is the safety net on the clock for one question.
    """

    def __init__(self, process: IslProcess = SHARED, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._process = process
        self._answer_seconds = answer_seconds
        self._known: dict[tuple[str, ...], bool] = {}

    def ask(self, conditions: Sequence[Condition], *, seconds: float = 60.0) -> tuple[Found, int]:
        """Whether the conditions can hold together, and what it took in Z3's steps, by the length of the set.

        "inhabited" is said only where unknown values and reads are all that has been left free. `seconds` caps the time from
        above; spent budgets ask nothing.
        """
        if seconds <= 0:
            return "unknown", 0
        try:
            text = set_text(conditions)
        except TooLarge:
            return "unknown", 0
        steps = STEPS_PER_CHARACTER * sum(map(len, text.parts))
        empty = self._known.get(text.parts)
        if empty is None:
            question = {"parts": text.parts, "point": False, "operations": MOST_OPERATIONS}
            answer = self._process.ask(question, seconds=min(seconds, self._answer_seconds))
            if answer is None:
                return "unknown", steps + STEPS_OF_A_FAILURE
            if len(self._known) >= MOST_REMEMBERED:
                self._known.clear()
            self._known[text.parts] = empty = bool(answer["empty"])
        else:
            steps = 0
        if empty:
            return "empty", steps
        return ("inhabited" if text.exact else "unknown"), steps

    def never(self, conditions: Sequence[Condition], *, seconds: float = 60.0) -> bool:
        """True when the conditions cannot hold together; false when they can, or when that was not decided."""
        return self.ask(conditions, seconds=seconds)[0] == "empty"


PROVER = SetProver()
