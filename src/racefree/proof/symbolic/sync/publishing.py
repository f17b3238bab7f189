"""Which executions a release of the same program makes visible to whoever acquires from it."""

from __future__ import annotations

from racefree.proof.symbolic.questions import common_loops, own
from racefree.proof.symbolic.records import Record
from racefree.proof.symbolic.sync.setting import Setting
from racefree.proof.symbolic.terms import FALSE, TRUE, Condition, Relation, both, compare, either


def published(record: Record, release: Record, setting: Setting, copies: tuple[int, int]) -> Condition:
    """When `record`, of copy `copies[0]`, happens before `release`, of `copies[1]`, if both are of one program."""
    if record is release or not before_a_barrier(record, release, setting):
        return FALSE
    out: Condition = TRUE
    for a, b in reversed(common_loops(record, release)):
        one, other = own(a.iteration, copies[0]), own(b.iteration, copies[1])
        out = either(compare(Relation.LT, one, other), both(compare(Relation.EQ, one, other), out))
    return out


def before_a_barrier(record: Record, release: Record, setting: Setting) -> bool:
    """Whether all lanes are done with `record` when one thread does the release that runs later in the same rounds, if it does.

    That thread itself does scalar writes, so those need no barrier.
    """
    if record.order >= release.order:
        return False
    if setting.model.barrier_before_release or (record.access.shape == () and record.access.kind.writes):
        return True
    return any(
        record.order < fence.order < release.order
        and (record.place[: len(fence.place)] == fence.place or release.place[: len(fence.place)] == fence.place)
        for fence in setting.reading.fences
    )
