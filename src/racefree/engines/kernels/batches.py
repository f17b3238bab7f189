"""Updates of a counter cut into batches at the values that waits ask for, and whether batches come one after the other."""

from __future__ import annotations

import numpy as np

from racefree.engines.program import I32, I64, U8


def needed(
    wait_start: I64,
    wait_value: I64,
    wait_step: I32,
    update_start: I64,
    update_step: I32,
    amount: I64,
    timing: U8,
    initial: I64,
    engine: I32,
    asynchronous: U8,
    engines: int,
    ends: U8,
    most: int,
    edges: I32,
) -> int:
    """Writes rows (source, target, 1 when the edge leaves the start) to `edges` and returns how many there are, or -1.

    Waits `wait_start[c]:wait_start[c + 1]` and updates `update_start[c]:update_start[c + 1]` of counter c are in the order of
    one execution; `timing[u]` is 1 for an update at completion, 2 for one while its asynchronous step runs. `ends[u]` becomes
    1 where a batch ends: right after the update that first satisfies some wait. Provided that each batch comes after the one
    before it, a wait needs those updates of its batch without which the value stays out of reach. The answer is -1 when the
    needed ones alone do not reach it, so that no fixed set of updates is what the wait asks for, when the edges are more than
    fit, and past `most` looks at updates. A wait adds nothing to an earlier one of its engine for as much.
    """
    room = len(edges)
    filled = 0
    highest = np.zeros(engines, dtype=np.int64)
    seen = np.full(engines, -1, dtype=np.int64)
    reached = np.zeros(len(amount) + 1, dtype=np.int64)
    longest = 0
    for counter in range(len(initial)):
        longest = max(longest, wait_start[counter + 1] - wait_start[counter])
    asked = np.zeros(longest, dtype=np.int64)
    asked_by = np.zeros(longest, dtype=np.int64)
    stamp = 0
    looks = 0
    for counter in range(len(initial)):
        first, last = update_start[counter], update_start[counter + 1]
        total = initial[counter]
        for update in range(first, last):
            total += amount[update]
            reached[update] = total
        for e in range(engines):
            highest[e] = initial[counter]
        count = 0
        for wait in range(wait_start[counter], wait_start[counter + 1]):
            mine = engine[wait_step[wait]]
            if wait_value[wait] <= highest[mine]:
                continue
            highest[mine] = wait_value[wait]
            low, high = first, last
            while low < high:
                middle = (low + high) // 2
                if reached[middle] < wait_value[wait]:
                    low = middle + 1
                else:
                    high = middle
            if low == last:
                return -1
            ends[low] = 1
            asked[count] = low
            asked_by[count] = wait
            count += 1
        for at in range(count):
            end = asked[at]
            target = wait_step[asked_by[at]]
            value = wait_value[asked_by[at]]
            stamp += 1
            got = np.int64(0)
            update = end
            while True:
                looks += 1
                if looks > most:
                    return -1
                step = update_step[update]
                necessary = reached[end] - amount[update] < value
                if necessary:
                    got += amount[update]
                    mine = engine[step]
                    fresh = True
                    if asynchronous[step] == 0:
                        # The last one of an engine comes after its earlier ones.
                        fresh = seen[mine] != stamp
                        seen[mine] = stamp
                    elif timing[update] == 2:
                        for near in (update - 1, update + 1):
                            # Completion implies the start.
                            if first <= near <= end and update_step[near] == step and timing[near] != 2:
                                fresh = fresh and reached[end] - amount[near] >= value
                    if fresh:
                        if filled >= room:
                            return -1
                        edges[filled, 0] = step
                        edges[filled, 1] = target
                        edges[filled, 2] = 1 if timing[update] == 2 else 0
                        filled += 1
                update -= 1
                if update < first or ends[update] == 1:
                    break
            before = reached[update] if update >= first else initial[counter]
            if before + got < value:
                return -1
    return filled


def consecutive(
    update_start: I64,
    update_step: I32,
    timing: U8,
    ends: U8,
    engine: I32,
    position: I32,
    asynchronous: U8,
    row: I32,
    chain: I32,
    chains: int,
    clock: I32,
    done: I32,
    most: int,
) -> bool:
    """Whether every update of a batch happens before every update of the next batch of its counter.

    Asynchronous steps of one `chain[x]` (-1: none) complete in the order of their positions. Gives up, with False, past
    `most` comparisons.
    """
    engines = clock.shape[1]
    longest = 0
    for counter in range(len(update_start) - 1):
        longest = max(longest, update_start[counter + 1] - update_start[counter])
    before = np.zeros(longest, dtype=np.int64)
    after = np.zeros(longest, dtype=np.int64)
    kinds = 2 * engines + chains
    slot = np.full(kinds, -1, dtype=np.int64)
    compared = 0
    for counter in range(len(update_start) - 1):
        befores = 0
        at, last = update_start[counter], update_start[counter + 1]
        while at < last:
            end = at
            while end < last - 1 and ends[end] == 0:
                end += 1
            if befores > 0:
                # Of each kind only the update that comes first: the others start or complete no earlier.
                for kind in range(kinds):
                    slot[kind] = -1
                afters = 0
                for update in range(at, end + 1):
                    step = update_step[update]
                    if asynchronous[step] == 1 and timing[update] == 1 and chain[step] >= 0:
                        kind = 2 * engines + chain[step]
                    else:
                        kind = 2 * engine[step] + (1 if timing[update] == 2 else 0)
                    if slot[kind] < 0:
                        slot[kind] = afters
                        after[afters] = update
                        afters += 1
                    elif position[step] < position[update_step[after[slot[kind]]]]:
                        after[slot[kind]] = update
                compared += befores * afters
                if compared > most:
                    return False
                for one in range(befores):
                    source = update_step[before[one]]
                    theirs = engine[source]
                    for other in range(afters):
                        step = update_step[after[other]]
                        mine = engine[step]
                        if timing[before[one]] == 2:
                            if source == step:
                                known = timing[after[other]] != 2
                            elif theirs == mine:
                                known = position[source] < position[step]
                            else:
                                known = clock[step, theirs] >= 3 * position[source] + 1
                        elif asynchronous[source] == 1:
                            known = done[row[source], mine] <= position[step]
                            if chain[source] >= 0 and chain[source] == chain[step] and timing[after[other]] == 1:
                                known = known or (asynchronous[step] == 1 and position[source] < position[step])
                        elif theirs == mine:
                            known = position[source] < position[step]
                        else:
                            known = clock[step, theirs] >= 3 * position[source] + 3
                        if not known:
                            return False
            # Of each kind only the update that comes last, and every transfer.
            for kind in range(kinds):
                slot[kind] = -1
            befores = 0
            for update in range(at, end + 1):
                step = update_step[update]
                kind = -1
                if timing[update] == 2:
                    kind = 2 * engine[step] + 1
                elif asynchronous[step] == 0:
                    kind = 2 * engine[step]
                elif chain[step] >= 0:
                    kind = 2 * engines + chain[step]
                if kind < 0 or slot[kind] < 0:
                    if kind >= 0:
                        slot[kind] = befores
                    before[befores] = update
                    befores += 1
                elif position[step] > position[update_step[before[slot[kind]]]]:
                    before[slot[kind]] = update
            at = end + 1
    return True
