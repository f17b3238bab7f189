"""Which rung next, and which verdict survives: the strongest claim any rung can defend."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Lanes = Literal["default", "strict"]
WantedScope = Literal["any", "launch"]


@dataclass(frozen=True, slots=True)
class Options:
    """How hard to try, and under which ordering rules.

    `lanes="strict"` drops the rule that one thread owns a lane. `scope="launch"` skips strengthening a proof of this launch
    to more launches. `budget` scales the default time budgets of the rungs (1.0).
    """

    lanes: Lanes = "default"
    scope: WantedScope = "any"
    budget: float = 1.0
