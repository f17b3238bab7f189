"""Which accesses race nowhere, wherever in their storages they go: only atomics on whole elements of one size go there."""

from __future__ import annotations

from collections.abc import Mapping

from racefree.graph.program import Access, Program, Ptr, Value, accesses, walk
from racefree.proof.footprint.memory import AddressSpace
from racefree.proof.footprint.slicing import flows


def excluding(
    program: Program, space: AddressSpace, places: Mapping[int, frozenset[int]], loose: frozenset[int]
) -> frozenset[int]:
    """The accesses (by index) that meet atomics alone, and these on the very same bytes.

    `places` holds the clusters each access may point into; those of `loose` may point anywhere. An address that leaves its
    cluster is not considered.
    """
    all_ = accesses(program)
    reaching = {cluster: [a for a in all_ if cluster in places[a.index]] for cluster in range(len(space.clusters))}
    pointers = _pointers_behind(program)
    kept = {cluster for cluster, each in reaching.items() if _exclude_each_other(each, cluster, space, pointers)}
    return frozenset(a.index for a in all_ if a.index not in loose and places[a.index] <= kept)


def _exclude_each_other(
    each: list[Access], cluster: int, space: AddressSpace, pointers: Mapping[int, frozenset[Value]]
) -> bool:
    sizes = {access.element_bytes for access in each}
    if len(sizes) != 1 or not all(_spans_programs(access) for access in each):
        return False
    (size,) = sizes
    bases = {t.address % size for t in space.tensors.values() if space.cluster_of(t.storage) == cluster}
    behind = frozenset[Value]().union(*(pointers[access.pointer.index] for access in each))
    steps = {value.element.pointee_bytes for value in behind if isinstance(value.element, Ptr)}
    return len(bases) == 1 and all(step % size == 0 for step in steps)


def _spans_programs(access: Access) -> bool:
    return access.kind.atomic and (access.scope is None or access.scope.spans_programs)


def _pointers_behind(program: Program) -> dict[int, frozenset[Value]]:
    """For the pointer of each access, the pointers it is made from, itself included."""
    made = {value.index: sources for statement in walk(program.body) for value, sources in flows(statement)}
    out = {}
    for access in accesses(program):
        found, waiting = {access.pointer}, [access.pointer]
        while waiting:
            sources = (s for s in made.get(waiting.pop().index, ()) if isinstance(s.element, Ptr))
            fresh = set(sources) - found
            found |= fresh
            waiting += fresh
        out[access.pointer.index] = frozenset(found)
    return out
