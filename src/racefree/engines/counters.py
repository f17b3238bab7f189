"""Waits and updates of every step, with each stretch between two resets of a semaphore counted as a counter of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from racefree.engines.program import I32, I64, U8, Timing, UpdateMode, WaitMode
from racefree.engines.timeline import Timelines
from racefree.errors import Refused

LARGEST_COUNT = 2**31 - 1

_WAIT, _ADD, _RESET = 0, 1, 2


@dataclass(frozen=True, slots=True, eq=False)
class Counters:
    """What the steps do to counters that only grow.

    Rows `waits[x]:waits[x + 1]` of `wait_*` belong to step x, rows `updates[x]:updates[x + 1]` of `counter`, `amount` and
    `timing` too; `wait_row` and `update_row` are rows of the program's tables. A reset is an update of
    nothing. `semaphore` gives the semaphore of each counter, `initial` its first value.

    `op_*` list the operations on semaphores that are ever reset, by counter; `resets` are those that open the counter.
    """

    waits: I64
    wait_counter: I32
    wait_value: I64
    wait_row: I32
    updates: I64
    counter: I32
    amount: I64
    timing: U8
    update_row: I32
    semaphore: I32
    initial: I64
    op_counter: I32
    op_step: I32
    op_kind: U8
    op_late: U8


def count(timelines: Timelines) -> Counters:
    """Reads the semaphores of a program. Raises Refused for modes without a known meaning and for counts past 31 bits."""
    program = timelines.program
    _refuse_unknown_modes(timelines)
    waits, wait_row = _spread(program.waits.instruction, timelines)
    updates, update_row = _spread(program.updates.instruction, timelines)
    wait_semaphore = program.waits.semaphore[wait_row]
    update_semaphore = program.updates.semaphore[update_row]
    mode = program.updates.mode[update_row]
    amount = program.updates.amount[update_row]
    timing = program.updates.timing[update_row]
    # What comes while a step runs may come last of all, so a reset must follow the completion.
    late = (timing != Timing.INPUTS_READ).astype(np.uint8)
    adds = mode == UpdateMode.ADD
    reset = np.zeros(len(program.semaphores), dtype=bool)
    reset[update_semaphore[~adds]] = True
    wait_step = np.repeat(np.arange(len(timelines)), np.diff(waits))
    update_step = np.repeat(np.arange(len(timelines)), np.diff(updates))

    of_wait, of_update = np.flatnonzero(reset[wait_semaphore]), np.flatnonzero(reset[update_semaphore])
    op_semaphore = np.concatenate([wait_semaphore[of_wait], update_semaphore[of_update]])
    op_step = np.concatenate([wait_step[of_wait], update_step[of_update]])
    op_kind = np.concatenate([np.full(len(of_wait), _WAIT), np.where(adds[of_update], _ADD, _RESET)])
    op_amount = np.concatenate([np.zeros(len(of_wait), dtype=np.int64), amount[of_update]])
    op_subtracts = np.concatenate([np.zeros(len(of_wait), dtype=bool), mode[of_update] == UpdateMode.SUBTRACT])
    op_late = np.concatenate([np.zeros(len(of_wait), dtype=np.uint8), late[of_update]])
    order = np.lexsort((op_kind, op_step, op_semaphore))
    epochs = _Epochs(op_semaphore[order], op_step[order], op_kind[order], op_amount[order], op_subtracts[order])

    plain = np.cumsum(~reset) - 1
    first_epoch = int((~reset).sum())
    op_counter = first_epoch + epochs.counter
    unsorted = np.empty(len(order), dtype=np.int64)
    unsorted[order] = op_counter
    wait_counter = plain[wait_semaphore]
    wait_counter[of_wait] = unsorted[: len(of_wait)]
    counter = plain[update_semaphore]
    counter[of_update] = unsorted[len(of_wait) :]
    semaphore = np.concatenate([np.flatnonzero(~reset), epochs.semaphore]).astype(np.int32)
    initial = np.concatenate([np.zeros(first_epoch, dtype=np.int64), epochs.initial])
    amount = np.where(adds, amount, 0)
    _refuse_large_counts(timelines, semaphore, initial, counter, amount)
    return Counters(
        waits=waits,
        wait_counter=wait_counter.astype(np.int32),
        wait_value=program.waits.value[wait_row],
        wait_row=wait_row,
        updates=updates,
        counter=counter.astype(np.int32),
        amount=amount,
        timing=timing,
        update_row=update_row,
        semaphore=semaphore,
        initial=initial,
        op_counter=op_counter.astype(np.int32),
        op_step=op_step[order].astype(np.int32),
        op_kind=op_kind[order].astype(np.uint8),
        op_late=op_late[order],
    )


def is_reset(op_kind: U8) -> npt.NDArray[np.bool_]:
    """Which operations open a counter."""
    opens: npt.NDArray[np.bool_] = op_kind == _RESET
    return opens


def is_wait(op_kind: U8) -> npt.NDArray[np.bool_]:
    """Which operations only look at a counter."""
    looks: npt.NDArray[np.bool_] = op_kind == _WAIT
    return looks


class _Epochs:
    """Sorted operations on semaphores that are reset, cut into counters; a run of equal resets opens one counter."""

    def __init__(
        self,
        semaphore: npt.NDArray[np.integer],
        step: npt.NDArray[np.integer],
        kind: npt.NDArray[np.integer],
        amount: I64,
        subtracts: npt.NDArray[np.bool_],
    ) -> None:
        resets = kind == _RESET
        fresh = np.ones(len(semaphore), dtype=bool)
        fresh[1:] = semaphore[1:] != semaphore[:-1]
        self._refuse_mixed(semaphore, step, kind, resets)
        repeats = np.zeros(len(semaphore), dtype=bool)
        repeats[1:] = resets[1:] & resets[:-1] & ~fresh[1:] & ~subtracts[1:] & ~subtracts[:-1]
        repeats[1:] &= amount[1:] == amount[:-1]
        # A first operation that is a reset still opens a second counter, so that what it must follow has a place to be.
        opens = resets & ~repeats
        begins = fresh.astype(np.int64) + opens
        self.counter = np.cumsum(begins) - 1 if len(begins) else np.zeros(0, dtype=np.int64)
        total = int(begins.sum())
        self.semaphore = np.zeros(total, dtype=np.int64)
        self.semaphore[self.counter] = semaphore
        self.initial = np.zeros(total, dtype=np.int64)
        both = np.flatnonzero(fresh & opens)
        self.semaphore[self.counter[both] - 1] = semaphore[both]
        self.initial[self.counter[opens & ~subtracts]] = amount[opens & ~subtracts]
        if subtracts.any():
            self._subtract(kind, amount, opens, subtracts)

    @staticmethod
    def _refuse_mixed(
        semaphore: npt.NDArray[np.integer],
        step: npt.NDArray[np.integer],
        kind: npt.NDArray[np.integer],
        resets: npt.NDArray[np.bool_],
    ) -> None:
        same = (step[1:] == step[:-1]) & (semaphore[1:] == semaphore[:-1])
        mixed = np.flatnonzero(same & resets[1:] & (kind[:-1] != _WAIT))
        if len(mixed):
            reason = f"step {int(step[mixed[0]])} resets a semaphore that it also updates in another way"
            raise Refused("semaphore-reset-by-its-user", reason)

    def _subtract(
        self,
        kind: npt.NDArray[np.integer],
        amount: I64,
        opens: npt.NDArray[np.bool_],
        subtracts: npt.NDArray[np.bool_],
    ) -> None:
        added = np.zeros(len(self.initial), dtype=np.int64)
        np.add.at(added, self.counter[kind == _ADD], amount[kind == _ADD])
        for at in np.flatnonzero(opens & subtracts).tolist():
            mine = int(self.counter[at])
            self.initial[mine] = self.initial[mine - 1] + added[mine - 1] - amount[at]
            if self.initial[mine] < 0:
                raise Refused("semaphore-below-zero", "a semaphore is decremented below zero")


def _spread(owner: I32, timelines: Timelines) -> tuple[I64, I32]:
    """Rows of a table sorted by instruction, repeated for each step: (starts by step, rows)."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(timelines.program)))])
    sizes = np.diff(starts)[timelines.instruction]
    ends = np.cumsum(sizes)
    rows = np.arange(int(ends[-1]) if len(ends) else 0)
    rows = rows + np.repeat(starts[:-1][timelines.instruction] - (ends - sizes), sizes)
    return np.concatenate([[0], ends]).astype(np.int64), rows.astype(np.int32)


def _refuse_unknown_modes(timelines: Timelines) -> None:
    program = timelines.program
    if (program.waits.mode == WaitMode.UNKNOWN).any():
        at = int(program.waits.instruction[np.flatnonzero(program.waits.mode == WaitMode.UNKNOWN)[0]])
        raise Refused("semaphore-mode", f"instruction {program.names[at]!r} waits in a way that is not known")
    if (program.updates.mode == UpdateMode.UNKNOWN).any():
        at = int(program.updates.instruction[np.flatnonzero(program.updates.mode == UpdateMode.UNKNOWN)[0]])
        raise Refused(
            "semaphore-mode", f"instruction {program.names[at]!r} updates a semaphore in a way that is not known"
        )
    if (program.updates.amount < 0).any():
        at = int(program.updates.instruction[np.flatnonzero(program.updates.amount < 0)[0]])
        raise Refused("semaphore-mode", f"instruction {program.names[at]!r} updates a semaphore by a negative amount")


def _refuse_large_counts(
    timelines: Timelines, semaphore: I32, initial: I64, counter: npt.NDArray[np.integer], amount: I64
) -> None:
    totals = initial.copy()
    np.add.at(totals, counter, amount)
    if len(totals) and int(totals.max()) > LARGEST_COUNT:
        name = timelines.program.semaphores[int(semaphore[int(totals.argmax())])]
        raise Refused("semaphore-overflow", f"semaphore {name} counts past {LARGEST_COUNT}, where the hardware wraps")
