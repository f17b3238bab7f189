"""The specified decision tree for the overlap of two accesses, exact at every fork."""

from __future__ import annotations

from racefree.engines.program import EngineProgram, Footprint
from racefree.geometry import overlaps, span


def accesses_overlap(program: EngineProgram, one: int, other: int) -> bool:
    """Whether two rows of the access table may touch a common byte, as the compiler's checker sees it.

    Two accesses of one buffer through the same run-time address count as disjoint, which hides real conflicts.
    """
    rows = program.accesses
    a, b = program.footprints[int(rows.footprint[one])], program.footprints[int(rows.footprint[other])]
    if _cannot_meet(a, b):
        return False
    same_address = rows.dynamic[one] >= 0 and rows.dynamic[one] == rows.dynamic[other]
    if same_address and rows.buffer[one] == rows.buffer[other]:
        return False
    if a.partitions is not None and b.partitions is not None and overlaps(a.partitions, b.partitions) is False:
        return False
    return overlaps(a.bytes, b.bytes) is not False


def _cannot_meet(a: Footprint, b: Footprint) -> bool:
    """The cheap rejection: another memory, or bounding boxes apart."""
    if a.space != b.space:
        return True
    axes = [(a.bytes, b.bytes)]
    if a.partitions is not None and b.partitions is not None:
        axes.append((a.partitions, b.partitions))
    for one, other in axes:
        (low_a, high_a), (low_b, high_b) = span(one), span(other)
        if high_a <= low_b or high_b <= low_a:
            return True
    return False
