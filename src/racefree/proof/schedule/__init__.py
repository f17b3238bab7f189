"""Decides launches whose programs synchronise through atomics, by exploring every interleaving at the launch's grid.

1. `relevance` finds the values that matter and the atomics to run one at a time. 2. `machine` runs one program instance to
its next such atomic. 3. `explore` goes through all interleavings of a group of instances. 4. `decide` groups the instances,
compares groups, and answers.
"""

from racefree.proof.schedule.decide import Budget, decide, races_among

__all__ = ["Budget", "decide", "races_among"]
