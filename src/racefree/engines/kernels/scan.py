"""Pairs of conflicting accesses that nothing orders, without looking at the ordered ones."""

from __future__ import annotations

import numpy as np

from racefree.engines.program import I32, I64, U8


def scan(
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
    access_writes: U8,
    chain: I32,
    meet_start: I64,
    meets: I32,
    chain_start: I64,
    chain_engine: I32,
    chain_writes: U8,
    chain_async: U8,
    alive: I32,
    nodes: I64,
    suspect: U8,
    every_pair: bool,
    found: I64,
) -> int:
    """Writes rows (first step, first access, second step, second access) to `found` and returns how many pairs there are,
    which may be more than fit.

    Accesses `access_start[i]:access_start[i + 1]` belong to instruction i; those with a mark in `suspect` (one place for each
    access of each step, in the order of `sequence`) are compared with earlier ones. Access a touches `footprint[a]` and
    belongs to chain `chain[a]`: one for each footprint, engine, direction and kind of completion; those of footprint f are
    `chain_start[f]..chain_start[f + 1]`, none where nothing on it can race. A synchronous chain is walked newest first up to
    the first access known to have happened. From an asynchronous one, accesses that engine e knows to have happened are
    unlinked for e; `alive` numbers these chains. `nodes` holds the number of nodes of all chains and of the asynchronous
    ones, and the number of the latter. Without `every_pair`, stops at the first.
    """
    engines = clock.shape[1]
    node_step = np.empty(nodes[0], dtype=np.int32)
    node_access = np.empty(nodes[0], dtype=np.int32)
    node_next = np.empty(nodes[0], dtype=np.int32)
    head = np.full(len(chain_engine), -1, dtype=np.int32)
    newest = np.full(len(chain_engine), -1, dtype=np.int32)
    living = np.full((engines, nodes[2]), -1, dtype=np.int32)
    link = np.empty((nodes[1], engines), dtype=np.int32)
    link_node = np.empty(nodes[1], dtype=np.int32)
    used = 0
    linked = 0
    pairs = 0
    place = 0
    room = len(found)
    for step in sequence:
        first, last = access_start[instruction[step]], access_start[instruction[step] + 1]
        mine = engine[step]
        here = position[step]
        for access in range(first, last):
            place += 1
            if suspect[place - 1] == 0:
                continue
            writes = access_writes[access]
            touched = footprint[access]
            for entry in range(meet_start[touched], meet_start[touched + 1]):
                other = meets[entry]
                for line in range(chain_start[other], chain_start[other + 1]):
                    if writes == 0 and chain_writes[line] == 0:
                        continue
                    if chain_async[line] == 0:
                        if chain_engine[line] == mine:
                            continue
                        horizon = clock[step, chain_engine[line]] - (3 if chain_writes[line] == 1 else 2)
                        if newest[line] <= horizon:
                            continue
                        node = head[line]
                        while node >= 0 and 3 * position[node_step[node]] > horizon:
                            if pairs < room:
                                found[pairs, 0] = node_step[node]
                                found[pairs, 1] = node_access[node]
                                found[pairs, 2] = step
                                found[pairs, 3] = access
                            pairs += 1
                            if not every_pair:
                                return pairs
                            node = node_next[node]
                        continue
                    slot = alive[line]
                    before = -1
                    at = living[mine, slot]
                    while at >= 0:
                        node = link_node[at]
                        earlier = node_step[node]
                        known = (
                            done[row[earlier], mine] if chain_writes[line] == 1 else read[row[earlier], mine]
                        ) <= here
                        following = link[at, mine]
                        if known:
                            if before >= 0:
                                link[before, mine] = following
                            else:
                                living[mine, slot] = following
                        else:
                            before = at
                            if earlier != step:
                                if pairs < room:
                                    found[pairs, 0] = earlier
                                    found[pairs, 1] = node_access[node]
                                    found[pairs, 2] = step
                                    found[pairs, 3] = access
                                pairs += 1
                                if not every_pair:
                                    return pairs
                        at = following
        for access in range(first, last):
            line = chain[access]
            if line < 0:
                continue
            node_step[used] = step
            node_access[used] = access
            if chain_async[line] == 0:
                node_next[used] = head[line]
                head[line] = used
                newest[line] = 3 * here
            else:
                slot = alive[line]
                link_node[linked] = used
                for e in range(engines):
                    link[linked, e] = living[e, slot]
                    living[e, slot] = linked
                linked += 1
            used += 1
    return pairs
