"""How long the solver may try: a deterministic count of its steps, with the wall clock as a safety net."""

from __future__ import annotations

import time
from dataclasses import dataclass, field


@dataclass(slots=True)
class Budget:
    """`steps` solver steps in all (Z3's resource count), `per_query` at most for one question, `seconds` on the clock."""

    steps: int
    per_query: int
    seconds: float
    started: float = field(default_factory=time.monotonic)

    def next_query(self) -> int:
        """Steps the next question may use; 0 when the budget is spent."""
        return 0 if self.left_ms() <= 0 else min(self.per_query, self.steps)

    def spend(self, steps: int) -> None:
        self.steps = max(0, self.steps - steps)

    def left_ms(self) -> int:
        return int(1000 * (self.seconds - (time.monotonic() - self.started)))
