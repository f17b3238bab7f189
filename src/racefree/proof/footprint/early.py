"""Which loads of written memory may still find what was there before the launch, all of them in one run.

In that run the programs keep in step, in the order of the source. A load that comes before every write to its storages, and is
in no loop with one, then comes before all the writes of all programs. What hangs on such loads alone does happen there.
"""

from __future__ import annotations

from racefree.access import Kind
from racefree.graph.program import Access, For, Program, While, accesses, walk
from racefree.proof.footprint.survey import Launch


def early_loads(launch: Launch) -> frozenset[int]:
    """The loads (by index); none where a program may have to wait for another."""
    all_ = accesses(launch.program)
    writes = [access for access in all_ if access.kind.writes]
    together = _in_one_loop(launch.program, (For, While))

    def is_early(load: Access) -> bool:
        where = launch.places[load.index]
        met = (write.index for write in writes if launch.places[write.index] & where)
        return all(load.index < index and (load.index, index) not in together for index in met)

    early = frozenset(a.index for a in all_ if a.kind is Kind.LOAD and is_early(a))
    polling = {index for index, _ in _in_one_loop(launch.program, (While,))}
    if any(access.index in polling and access.index not in early and access.kind is not Kind.STORE for access in all_):
        return frozenset()
    return frozenset(index for index in early if launch.places[index] & launch.written)


def _in_one_loop(program: Program, kinds: tuple[type, ...]) -> set[tuple[int, int]]:
    """The pairs of accesses (by index), with themselves too, that some loop is around."""
    out: set[tuple[int, int]] = set()
    for statement in walk(program.body):
        if isinstance(statement, kinds):
            inside = [s.index for s in walk((statement,)) if isinstance(s, Access)]
            out |= {(a, b) for a in inside for b in inside}
    return out
