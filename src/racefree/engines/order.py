"""What must happen before what: the answer both kinds of order (dependencies, semaphores) are turned into."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import numpy as np
import numpy.typing as npt

from racefree.engines.compiled import kernel
from racefree.engines.kernels import clocks
from racefree.engines.program import I32
from racefree.engines.timeline import Timelines

Integers = npt.NDArray[np.integer]


class QueueOrder(str, Enum):
    """What is assumed about the asynchronous steps of one queue."""

    IGNORED = "ignored"
    """They complete in any order."""
    COMPLETION = "completion"
    """They complete in the order in which they were issued; their transfers may overlap."""
    TRUSTED = "trusted"
    """Each begins only after the one before it completed."""


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """Happens-before between the steps of `timelines`.

    * `sequence`: all steps, such that a step never must happen before an earlier one of the list.
    * `clock[x, e]`: how far engine e must be when x starts, in thirds of a step (see `racefree.engines.kernels`).
    * `row[x]`: -1, or the number r of an asynchronous step; `done[r, e]` is the first position on engine e that starts only
      after step r completed, `read[r, e]` the first that starts only after it read its inputs (NEVER when there is none).
    """

    timelines: Timelines
    sequence: I32
    clock: I32
    row: I32
    done: I32
    read: I32

    def completed_before(self, first: int, second: int) -> bool:
        """Whether step `first` must complete before step `second` starts."""
        return self._before(first, second, self.done, 3)

    def read_before(self, first: int, second: int) -> bool:
        """Whether step `first` must have read its inputs before step `second` starts."""
        return self._before(first, second, self.read, 2)

    def completed_before_each(self, first: Integers, second: Integers) -> npt.NDArray[np.bool_]:
        """`completed_before` for many pairs of steps."""
        return self.before_each(first, second, np.ones(len(first), dtype=bool))

    def before_each(self, first: Integers, second: Integers, writes: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """For many pairs: whether the first step must have completed (`writes`) or read before the second starts."""
        lines = self.timelines
        answer = np.empty(len(first), dtype=np.uint8)
        kernel(clocks.ordered, len(first))(
            first.astype(np.int64), second.astype(np.int64), writes.astype(np.uint8), lines.engine, lines.position, self.row,
            self.clock, self.done, self.read, answer,
        )  # fmt: skip
        return answer.view(np.bool_)

    def _before(self, first: int, second: int, table: I32, lead: int) -> bool:
        lines = self.timelines
        if self.row[first] >= 0:
            return bool(table[self.row[first], lines.engine[second]] <= lines.position[second])
        if lines.engine[first] == lines.engine[second]:
            return bool(lines.position[first] < lines.position[second])
        return bool(self.clock[second, lines.engine[first]] >= 3 * int(lines.position[first]) + lead)


def asynchronous_rows(timelines: Timelines) -> I32:
    """Numbers the asynchronous steps; -1 for the others."""
    row = np.full(len(timelines), -1, dtype=np.int32)
    which = np.flatnonzero(timelines.asynchronous)
    row[which] = np.arange(len(which), dtype=np.int32)
    return row
