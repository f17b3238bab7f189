"""Adds order edges until no given pair is unordered, and no edge that the others make superfluous."""

from __future__ import annotations

from racefree.engines.program import I32, I64


def add_edges(
    sequence: I32,
    engine: I32,
    position: I32,
    previous: I32,
    row: I32,
    lines: I64,
    stream: I32,
    starts: I64,
    sources: I32,
    clock: I32,
    done: I32,
    edges: I32,
) -> int:
    """Writes rows (source, target) to `edges` and returns their number; raises `clock` and lowers `done` to match.

    `sources[starts[x]:starts[x + 1]]` are to complete before step x starts, the latest in `sequence` first.
    """
    engines = clock.shape[1]
    added = 0
    for step in sequence:
        mine = engine[step]
        before = previous[step]
        changed = False
        if before >= 0:
            for e in range(engines):
                if clock[before, e] > clock[step, e]:
                    clock[step, e] = clock[before, e]
        changed = True
        for at in range(starts[step] - 1, starts[step + 1]):
            if at >= starts[step]:
                source = sources[at]
                theirs = engine[source]
                known = False
                if row[source] >= 0:
                    known = done[row[source], mine] <= position[step]
                    for e in range(engines):
                        if (clock[step, e] + 2) // 3 > done[row[source], e]:
                            known = True
                else:
                    known = clock[step, theirs] >= 3 * position[source] + 3 or theirs == mine
                if known:
                    continue
                edges[added, 0] = source
                edges[added, 1] = step
                added += 1
                for e in range(engines):
                    if clock[source, e] > clock[step, e]:
                        clock[step, e] = clock[source, e]
                reach = 3 * position[source] + 3
                if row[source] >= 0:
                    reach = 3 * position[source] + 1
                    if position[step] < done[row[source], mine]:
                        done[row[source], mine] = position[step]
                if reach > clock[step, theirs] and theirs != mine:
                    clock[step, theirs] = reach
                changed = True
            while changed:
                changed = False
                for e in range(engines):
                    begun = (clock[step, e] + 2) // 3
                    if e != mine and begun > 0:
                        other = stream[lines[e] + begun - 1]
                        for f in range(engines):
                            if clock[other, f] > clock[step, f]:
                                clock[step, f] = clock[other, f]
                                changed = True
    return added
