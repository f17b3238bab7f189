"""How long a launch may be asked about: a deterministic count of steps, with the wall clock as a safety net."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

MOST_OF_THE_CLOCK = 0.3


@dataclass(slots=True)
class Budget:
    """`steps` in all (Z3's resource count, and what integer sets take by that measure), `per_query` at most for one question to
    Z3, `seconds` on the clock."""

    steps: int
    per_query: int
    seconds: float
    started: float = field(default_factory=time.monotonic)

    def next_query(self) -> int:
        """Steps the next question may use; 0 when the budget is spent."""
        return 0 if self.left_ms() <= 0 else min(self.per_query, self.steps)

    def spend(self, steps: int) -> None:
        self.steps = max(0, self.steps - steps)

    def half(self) -> Budget:
        """A budget of half of what is left, to be spent from this one by `settle`."""
        return Budget(self.steps // 2, self.per_query // 2, self.left_ms() / 2000)

    def settle(self, part: Budget) -> None:
        """Take off what has been used of `half()`."""
        self.spend(self.steps // 2 - part.steps)

    def query_ms(self) -> int:
        """How long one question may take on the clock: a part of what there was in all."""
        return max(1, min(self.left_ms(), int(1000 * self.seconds * MOST_OF_THE_CLOCK)))

    def left_ms(self) -> int:
        return int(1000 * (self.seconds - (time.monotonic() - self.started)))
