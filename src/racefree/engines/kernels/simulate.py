"""Runs of a program in which counters only grow: they decide exactly what must have happened before a step can start.

Nothing is ever consumed, so doing more never disables anything: the steps reachable while one thing is held back are found
by doing everything else as far as it goes, in any order. What is not reachable then must come after the thing held back.

Shared arguments: `stream[lines[e]:lines[e + 1]]` are the steps of engine e; step x waits for `wait_value[w]` on
`wait_semaphore[w]`, w in `waits[x]..waits[x + 1]`, and adds `amount[u]` to `semaphore[u]`, u in `updates[x]..updates[x + 1]`;
`timing[u]` is 1 for an update at completion, 0 for one when the inputs were read; `group[x]` is its rendezvous or -1.
"""

from __future__ import annotations

import numpy as np

from racefree.engines.program import I32, I64, U8


def execute(
    lines: I64,
    stream: I32,
    waits: I64,
    wait_semaphore: I32,
    wait_value: I64,
    updates: I64,
    semaphore: I32,
    amount: I64,
    group: I32,
    group_size: I32,
    initial: I64,
    order: I32,
) -> int:
    """Fills `order` with one execution, always the first step in document order that can start; returns its length.

    A shorter order than the program means that the program is stuck whatever is done.
    """
    engines = len(lines) - 1
    counters = initial.copy()
    at = lines[:engines].copy()
    arrived = np.zeros(engines, dtype=np.uint8)
    filled = 0
    while True:
        chosen = -1
        for e in range(engines):
            if at[e] < lines[e + 1] and arrived[e] == 0 and (chosen < 0 or stream[at[e]] < stream[at[chosen]]):
                step = stream[at[e]]
                ready = True
                for w in range(waits[step], waits[step + 1]):
                    if counters[wait_semaphore[w]] < wait_value[w]:
                        ready = False
                        break
                if ready:
                    chosen = e
        if chosen < 0:
            return filled
        step = stream[at[chosen]]
        order[filled] = step
        filled += 1
        meeting = group[step]
        if meeting < 0:
            for u in range(updates[step], updates[step + 1]):
                counters[semaphore[u]] += amount[u]
            at[chosen] += 1
            continue
        arrived[chosen] = 1
        present = 0
        for e in range(engines):
            if arrived[e] == 1 and group[stream[at[e]]] == meeting:
                present += 1
        if present == group_size[meeting]:
            for e in range(engines):
                if arrived[e] == 1 and group[stream[at[e]]] == meeting:
                    step = stream[at[e]]
                    for u in range(updates[step], updates[step + 1]):
                        counters[semaphore[u]] += amount[u]
                    arrived[e] = 0
                    at[e] += 1


def lazy(
    slow: int,
    lines: I64,
    stream: I32,
    waits: I64,
    wait_semaphore: I32,
    wait_value: I64,
    updates: I64,
    semaphore: I32,
    amount: I64,
    timing: U8,
    group: I32,
    group_size: I32,
    asynchronous: U8,
    initial: I64,
    clock: I32,
    peak: I64,
) -> None:
    """Holds engine `slow` back: it moves a third of a step, and only when nothing else can move.

    Fills `clock[x]`: how far, in thirds of a step, `slow` must be for step x to start (untouched where x never starts), and
    for each wait w of `slow`, `peak[w]`: the largest value its counter can have while the waiting step has not started.
    """
    engines = len(lines) - 1
    counters = initial.copy()
    at = lines[:engines].copy()
    state = np.zeros(engines, dtype=np.uint8)  # 0: before its start, 1: arrived at a barrier, 2: the barrier is open
    blocked = np.full(engines, -1, dtype=np.int32)
    watchers = np.zeros(len(initial), dtype=np.int32)
    pending = np.empty(engines, dtype=np.int32)
    queued = np.zeros(engines, dtype=np.uint8)
    count = 0
    for e in range(engines):
        if e != slow:
            pending[count] = e
            queued[e] = 1
            count += 1
    progress = 0
    third = 0
    while True:
        if count > 0:
            count -= 1
            e = pending[count]
            queued[e] = 0
        else:
            e = slow
        if e == slow and at[e] >= lines[e + 1]:
            return
        while at[e] < lines[e + 1] and state[e] != 1:
            step = stream[at[e]]
            begins = state[e] == 0 and (e != slow or third == 0)
            if begins:
                stuck = -1
                for w in range(waits[step], waits[step + 1]):
                    if e == slow:
                        peak[w] = counters[wait_semaphore[w]]
                    if counters[wait_semaphore[w]] < wait_value[w] and stuck < 0:
                        stuck = wait_semaphore[w]
                if stuck >= 0:
                    if e == slow:
                        return
                    blocked[e] = stuck
                    watchers[stuck] += 1
                    break
                clock[step] = progress
                if e == slow:
                    progress = 3 * (at[e] - lines[e]) + 1
                    third = 1
                meeting = group[step]
                if meeting >= 0:
                    state[e] = 1
                    present = 0
                    for other in range(engines):
                        if state[other] == 1 and group[stream[at[other]]] == meeting:
                            present += 1
                    if present < group_size[meeting]:
                        break
                    for other in range(engines):
                        if state[other] == 1 and group[stream[at[other]]] == meeting:
                            state[other] = 2
                            if other != e and other != slow and queued[other] == 0:
                                pending[count] = other
                                queued[other] = 1
                                count += 1
                    if e == slow and count > 0:
                        break
            whole = e != slow or asynchronous[step] == 1 or updates[step] == updates[step + 1]
            raised = False
            for u in range(updates[step], updates[step + 1]):
                if whole or timing[u] == third - 1:
                    counters[semaphore[u]] += amount[u]
                    raised = True
                    if watchers[semaphore[u]] > 0:
                        for other in range(engines):
                            if blocked[other] == semaphore[u]:
                                blocked[other] = -1
                                if queued[other] == 0:
                                    pending[count] = other
                                    queued[other] = 1
                                    count += 1
                        watchers[semaphore[u]] = 0
            if e == slow:
                third = 0 if whole else (third + 1) % 3
                progress = 3 * (at[e] - lines[e]) + (3 if third == 0 and not asynchronous[step] else max(third, 1))
                if asynchronous[step] == 1:
                    progress = 3 * (at[e] - lines[e]) + 1
            if e != slow or third == 0:
                at[e] += 1
                state[e] = 0
            if e == slow and raised and count > 0:
                break
        if e == slow and count == 0 and state[e] == 1:
            return


def withheld(
    lines: I64,
    stream: I32,
    waits: I64,
    wait_semaphore: I32,
    wait_value: I64,
    updates: I64,
    semaphore: I32,
    amount: I64,
    timing: U8,
    group: I32,
    group_size: I32,
    engine: I32,
    initial: I64,
    order: I32,
    first_class: int,
    last_class: int,
    class_start: I64,
    members: I32,
    class_of: I32,
    rank: I32,
    in_order: bool,
    hold_reads: bool,
    done: I32,
) -> None:
    """Holds back one asynchronous step at a time and records how far each engine comes.

    `members[class_start[c]:class_start[c + 1]]` are the steps of class c in the order of `order`, an execution; all of a
    class are issued by one engine and make the same updates, so that the step held back can be exchanged for the next one
    (with `in_order`, later steps of the class complete only after it instead). Fills `done[i, e]` for member number i of
    classes `first_class <= c < last_class`.
    """
    engines = len(lines) - 1
    never = np.int32(2147483647)
    counters = initial.copy()
    base = lines[:engines].copy()
    base_arrived = np.zeros(engines, dtype=np.uint8)
    at = lines[:engines].copy()
    state = np.zeros(engines, dtype=np.uint8)
    blocked = np.full(engines, -1, dtype=np.int32)
    watchers = np.zeros(len(initial), dtype=np.int32)
    pending = np.empty(engines, dtype=np.int32)
    queued = np.zeros(engines, dtype=np.uint8)
    log_semaphore = np.empty(len(semaphore) + 1, dtype=np.int32)
    log_amount = np.empty(len(semaphore) + 1, dtype=np.int64)
    replayed = 0
    for c in range(first_class, last_class):
        first, last = class_start[c], class_start[c + 1]
        while replayed < len(order) and order[replayed] != members[first]:
            step = order[replayed]
            replayed += 1
            e = engine[step]
            meeting = group[step]
            if meeting < 0:
                for u in range(updates[step], updates[step + 1]):
                    counters[semaphore[u]] += amount[u]
                base[e] += 1
                continue
            base_arrived[e] = 1
            present = 0
            for other in range(engines):
                if base_arrived[other] == 1 and group[stream[base[other]]] == meeting:
                    present += 1
            if present == group_size[meeting]:
                for other in range(engines):
                    if base_arrived[other] == 1 and group[stream[base[other]]] == meeting:
                        joined = stream[base[other]]
                        for u in range(updates[joined], updates[joined + 1]):
                            counters[semaphore[u]] += amount[u]
                        base_arrived[other] = 0
                        base[other] += 1
        logged = 0
        count = 0
        for e in range(engines):
            at[e] = base[e]
            state[e] = base_arrived[e]
            blocked[e] = -1
            pending[count] = e
            queued[e] = 1
            count += 1
        current = 0
        issued = 0
        size = last - first
        while current < size:
            while count > 0:
                count -= 1
                e = pending[count]
                queued[e] = 0
                while at[e] < lines[e + 1] and state[e] != 1:
                    step = stream[at[e]]
                    if state[e] == 0:
                        stuck = -1
                        for w in range(waits[step], waits[step + 1]):
                            if counters[wait_semaphore[w]] < wait_value[w]:
                                stuck = wait_semaphore[w]
                                break
                        if stuck >= 0:
                            blocked[e] = stuck
                            watchers[stuck] += 1
                            break
                        meeting = group[step]
                        if meeting >= 0:
                            state[e] = 1
                            present = 0
                            for other in range(engines):
                                if state[other] == 1 and group[stream[at[other]]] == meeting:
                                    present += 1
                            if present < group_size[meeting]:
                                break
                            for other in range(engines):
                                if state[other] == 1 and group[stream[at[other]]] == meeting:
                                    state[other] = 2
                                    if other != e and queued[other] == 0:
                                        pending[count] = other
                                        queued[other] = 1
                                        count += 1
                    held = False
                    if class_of[step] == c:
                        issued += 1
                        held = rank[step] == current or (in_order and rank[step] > current)
                    for u in range(updates[step], updates[step + 1]):
                        if held and timing[u] != 2 and (hold_reads or timing[u] == 1):
                            continue
                        log_semaphore[logged] = semaphore[u]
                        log_amount[logged] = amount[u]
                        logged += 1
                        counters[semaphore[u]] += amount[u]
                        if watchers[semaphore[u]] > 0:
                            for other in range(engines):
                                if blocked[other] == semaphore[u]:
                                    blocked[other] = -1
                                    if queued[other] == 0:
                                        pending[count] = other
                                        queued[other] = 1
                                        count += 1
                            watchers[semaphore[u]] = 0
                    at[e] += 1
                    state[e] = 0
            for e in range(engines):
                position = at[e] - lines[e] + (1 if state[e] == 1 else 0)
                done[first + current, e] = position if at[e] < lines[e + 1] else never
                if position >= lines[e + 1] - lines[e]:
                    done[first + current, e] = never
            if issued <= current:
                break
            if current + 1 == size:
                break
            if not in_order and issued > current + 1:
                current += 1
                continue
            step = members[first + current]
            current += 1
            for u in range(updates[step], updates[step + 1]):
                if timing[u] == 2 or (not hold_reads and timing[u] == 0):
                    continue
                log_semaphore[logged] = semaphore[u]
                log_amount[logged] = amount[u]
                logged += 1
                counters[semaphore[u]] += amount[u]
                if watchers[semaphore[u]] > 0:
                    for other in range(engines):
                        if blocked[other] == semaphore[u]:
                            blocked[other] = -1
                            if queued[other] == 0:
                                pending[count] = other
                                queued[other] = 1
                                count += 1
                    watchers[semaphore[u]] = 0
        for e in range(engines):
            if blocked[e] >= 0:
                watchers[blocked[e]] = 0
        for entry in range(logged):
            counters[log_semaphore[entry]] -= log_amount[entry]
