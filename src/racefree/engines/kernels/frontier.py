"""Accesses that race with an earlier one, found from the accesses of each footprint that no later write has overtaken."""

from __future__ import annotations

import numpy as np

from racefree.engines.program import I32, I64, U8


def suspects(
    sequence: I32,
    instruction: I32,
    engine: I32,
    position: I32,
    row: I32,
    clock: I32,
    done: I32,
    read: I32,
    access_start: I64,
    footprint: I32,
    writes: U8,
    meet_start: I64,
    meets: I32,
    nodes: int,
    most: int,
    first_only: bool,
    suspect: U8,
    watched: U8,
) -> int:
    """Marks accesses that race with an earlier one and the footprints those touch; returns how many accesses are marked.

    Accesses `access_start[i]:access_start[i + 1]` belong to instruction i; `suspect` has one place for each access of each
    step, in the order of `sequence`. A write that comes after an earlier access stands for it: whatever comes after the
    write comes after both, and whatever does not races with the write. So each footprint keeps, for each engine, its newest
    read and write that nothing stands for, and lists of the asynchronous ones, `nodes` in all. An access is marked unless
    all of those that it meets must come before it. One that would have to look at more than `most` asynchronous ones is
    marked as well. With `first_only`, stops at the first one that is sure to race.
    """
    engines = clock.shape[1]
    newest = np.full((len(meet_start) - 1, 2 * engines), -1, dtype=np.int32)
    head = np.full((len(meet_start) - 1, 2), -1, dtype=np.int32)
    node_row = np.empty(nodes, dtype=np.int32)
    node_next = np.empty(nodes, dtype=np.int32)
    used = 0
    place = 0
    marked = 0
    for step in sequence:
        first, last = access_start[instruction[step]], access_start[instruction[step] + 1]
        mine = engine[step]
        here = position[step]
        for access in range(first, last):
            touched = footprint[access]
            certain = False
            possible = False
            for entry in range(meet_start[touched], meet_start[touched + 1]):
                other = meets[entry]
                late = False
                for e in range(engines):
                    if e != mine and 3 * newest[other, e] + 3 > clock[step, e]:
                        late = True
                    if writes[access] == 1 and e != mine and 3 * newest[other, engines + e] + 2 > clock[step, e]:
                        late = True
                looks = most
                node = head[other, 0]
                while node >= 0 and not late and looks > 0:
                    late = done[node_row[node], mine] > here
                    looks -= 1
                    node = node_next[node]
                unseen = node >= 0
                if writes[access] == 1:
                    node = head[other, 1]
                    while node >= 0 and not late and looks > 0:
                        late = read[node_row[node], mine] > here
                        looks -= 1
                        node = node_next[node]
                    unseen = unseen or node >= 0
                certain = certain or late
                possible = possible or unseen
                if late or unseen:
                    watched[other] = 1
            if certain or possible:
                suspect[place + access - first] = 1
                marked += 1
                if first_only and certain:
                    return marked
        for access in range(first, last):
            touched = footprint[access]
            if meet_start[touched] == meet_start[touched + 1]:
                continue
            kind = 0 if writes[access] == 1 else 1
            if kind == 0:
                for e in range(engines):
                    if e == mine or 3 * newest[touched, e] + 3 <= clock[step, e]:
                        newest[touched, e] = -1
                    if e == mine or 3 * newest[touched, engines + e] + 2 <= clock[step, e]:
                        newest[touched, engines + e] = -1
                for side in range(2):
                    before = -1
                    node = head[touched, side]
                    while node >= 0:
                        following = node_next[node]
                        since = done[node_row[node], mine] if side == 0 else read[node_row[node], mine]
                        if since > here:
                            before = node
                        elif before >= 0:
                            node_next[before] = following
                        else:
                            head[touched, side] = following
                        node = following
            if row[step] >= 0:
                node_row[used] = row[step]
                node_next[used] = head[touched, kind]
                head[touched, kind] = used
                used += 1
            else:
                newest[touched, kind * engines + mine] = here
        place += last - first
    return marked
