"""Vector clocks of a graph of steps: what is known to have happened before each step starts, and what comes after."""

from __future__ import annotations

import numpy as np

from racefree.engines.program import I32, I64, U8


def topological(
    previous: I32,
    following: I32,
    starts: I64,
    targets: I32,
    group: I32,
    group_size: I32,
    members: I32,
    group_start: I64,
) -> I32:
    """Steps such that every edge goes forwards, or fewer steps than there are when the edges run in a circle.

    `targets[starts[x]:starts[x + 1]]` depend on x; `members[group_start[g]:group_start[g + 1]]` are rendezvous g.
    """
    count = len(previous)
    waiting = np.zeros(count, dtype=np.int32)
    for target in targets:
        waiting[target] += 1
    for step in range(count):
        before = previous[step]
        if before >= 0:
            waiting[step] += 2 if group[before] >= 0 else 1
    missing = group_size.copy()
    order = np.empty(count, dtype=np.int32)
    filled = 0
    for step in range(count):
        if waiting[step] == 0:
            order[filled] = step
            filled += 1
    at = 0
    while at < filled:
        step = order[at]
        at += 1
        after = following[step]
        if after >= 0:
            waiting[after] -= 1
            if waiting[after] == 0:
                order[filled] = after
                filled += 1
        meeting = group[step]
        if meeting < 0:
            for row in range(starts[step], starts[step + 1]):
                target = targets[row]
                waiting[target] -= 1
                if waiting[target] == 0:
                    order[filled] = target
                    filled += 1
            continue
        missing[meeting] -= 1
        if missing[meeting] > 0:
            continue
        for at_member in range(group_start[meeting], group_start[meeting + 1]):
            member = members[at_member]
            after = following[member]
            if after >= 0:
                waiting[after] -= 1
                if waiting[after] == 0:
                    order[filled] = after
                    filled += 1
            for row in range(starts[member], starts[member + 1]):
                target = targets[row]
                waiting[target] -= 1
                if waiting[target] == 0:
                    order[filled] = target
                    filled += 1
    return order[:filled]


def forward(
    order: I32,
    engine: I32,
    position: I32,
    previous: I32,
    starts: I64,
    sources: I32,
    issue: U8,
    group: I32,
    groups: int,
    queue: I32,
    queues: int,
    row: I32,
    rows: int,
    clock: I32,
) -> None:
    """Fills `clock[x, e]`: how far engine e is known to be, in thirds of a step, when step x starts.

    `sources[starts[x]:starts[x + 1]]` must complete (or, by `issue`, start) before x starts. `queue[x]` is -1, or the queue
    on which asynchronous step x completes after the earlier ones; `row[x]` numbers such steps.
    """
    engines = clock.shape[1]
    hub = np.zeros((groups, engines), dtype=np.int32)
    drained = np.zeros((queues, engines), dtype=np.int32)
    completion = np.zeros((rows, engines), dtype=np.int32)
    for step in order:
        before = previous[step]
        if before >= 0:
            meeting = group[before]
            for e in range(engines):
                clock[step, e] = clock[before, e]
                if meeting >= 0 and hub[meeting, e] > clock[step, e]:
                    clock[step, e] = hub[meeting, e]
            clock[step, engine[step]] = 3 * position[step]
        for at in range(starts[step], starts[step + 1]):
            source = sources[at]
            if queue[source] >= 0 and issue[at] == 0:
                for e in range(engines):
                    if completion[row[source], e] > clock[step, e]:
                        clock[step, e] = completion[row[source], e]
            else:
                for e in range(engines):
                    if clock[source, e] > clock[step, e]:
                        clock[step, e] = clock[source, e]
            meeting = group[source]
            if meeting >= 0 and issue[at] == 0:
                for e in range(engines):
                    if hub[meeting, e] > clock[step, e]:
                        clock[step, e] = hub[meeting, e]
            done = 3 * position[source] + (1 if issue[at] == 1 or row[source] >= 0 else 3)
            if done > clock[step, engine[source]] and engine[source] != engine[step]:
                clock[step, engine[source]] = done
        meeting = group[step]
        if meeting >= 0:
            for e in range(engines):
                if clock[step, e] > hub[meeting, e]:
                    hub[meeting, e] = clock[step, e]
            if 3 * position[step] + 1 > hub[meeting, engine[step]]:
                hub[meeting, engine[step]] = 3 * position[step] + 1
        if queue[step] >= 0:
            for e in range(engines):
                if clock[step, e] > drained[queue[step], e]:
                    drained[queue[step], e] = clock[step, e]
            if 3 * position[step] + 1 > drained[queue[step], engine[step]]:
                drained[queue[step], engine[step]] = 3 * position[step] + 1
            for e in range(engines):
                completion[row[step], e] = drained[queue[step], e]


def backward(
    order: I32,
    engine: I32,
    position: I32,
    previous: I32,
    following: I32,
    starts: I64,
    targets: I32,
    issue: U8,
    source_starts: I64,
    sources: I32,
    source_issue: U8,
    group: I32,
    groups: int,
    queue: I32,
    queues: int,
    row: I32,
    after: I32,
    done: I32,
) -> None:
    """Fills `after[x, e]`, the first position on e that starts only after x started, and `done[r, e]` for asynchronous
    step number r: the first position on e that starts only after it completed. Both come filled with NEVER.
    """
    engines = after.shape[1]
    never = np.int32(2147483647)
    hub = np.full((groups, engines), never, dtype=np.int32)
    later = np.full((queues, engines), never, dtype=np.int32)
    for index in range(len(order) - 1, -1, -1):
        step = order[index]
        if row[step] >= 0:
            mine = row[step]
            for at in range(starts[step], starts[step + 1]):
                target = targets[at]
                for e in range(engines):
                    if issue[at] == 1:
                        after[step, e] = min(after[step, e], after[target, e])
                    elif after[target, e] < done[mine, e]:
                        done[mine, e] = after[target, e]
            if queue[step] >= 0:
                for e in range(engines):
                    if later[queue[step], e] < done[mine, e]:
                        done[mine, e] = later[queue[step], e]
                    later[queue[step], e] = done[mine, e]
            for e in range(engines):
                after[step, e] = min(after[step, e], done[mine, e])
        else:
            for at in range(starts[step], starts[step + 1]):
                target = targets[at]
                for e in range(engines):
                    if after[target, e] < after[step, e]:
                        after[step, e] = after[target, e]
        next_step = following[step]
        if next_step >= 0:
            for e in range(engines):
                if after[next_step, e] < after[step, e]:
                    after[step, e] = after[next_step, e]
        if group[step] >= 0:
            for e in range(engines):
                if hub[group[step], e] < after[step, e]:
                    after[step, e] = hub[group[step], e]
        after[step, engine[step]] = position[step]
        before = previous[step]
        for at in range(source_starts[step] - 1, source_starts[step + 1]):
            # A member of a barrier completes only after all members started: what follows one follows them all.
            source = before if at < source_starts[step] else sources[at]
            if source >= 0 and group[source] >= 0 and (at < source_starts[step] or source_issue[at] == 0):
                for e in range(engines):
                    if after[step, e] < hub[group[source], e]:
                        hub[group[source], e] = after[step, e]


def ordered(
    first: I64,
    second: I64,
    writes: U8,
    engine: I32,
    position: I32,
    row: I32,
    clock: I32,
    done: I32,
    read: I32,
    answer: U8,
) -> None:
    """Whether step `first[i]` must have completed (where `writes[i]` is 1) or read its inputs before `second[i]` starts."""
    for pair in range(len(first)):
        one, other = first[pair], second[pair]
        theirs, mine = engine[one], engine[other]
        if row[one] >= 0:
            since = done[row[one], mine] if writes[pair] == 1 else read[row[one], mine]
            known = since <= position[other]
        elif theirs == mine:
            known = position[one] < position[other]
        else:
            known = clock[other, theirs] >= 3 * position[one] + (3 if writes[pair] == 1 else 2)
        answer[pair] = 1 if known else 0
