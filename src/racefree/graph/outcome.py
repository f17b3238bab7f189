"""Whether a launch that is proved race-free leaves the same memory behind in whatever order its instances run."""

from __future__ import annotations

from racefree.access import Kind
from racefree.graph.mentions import mentioned
from racefree.graph.program import Program, accesses

_COMMUTING = frozenset(("add", "and", "or", "xor", "max", "min", "umax", "umin"))
"""Integer operations of which any two of one name give the same in either order. Sums of floats round differently."""


def order_matters(program: Program) -> str:
    """Why the order of the instances may show in memory, "" if it cannot as long as the launch has no race.

    Without atomics an instance sees nothing of the others. Atomics of one commuting operation whose results nobody looks at
    add up to the same.
    """
    atomics = [access for access in accesses(program) if access.kind.atomic]
    if len({access.rmw for access in atomics}) > 1:
        return "it has atomics of several operations"
    used = set().union(*(mentioned(statement) for statement in program.body))
    for access in atomics:
        if access.kind is not Kind.RMW or access.rmw not in _COMMUTING:
            return f"what its atomic {access.rmw or 'compare-and-swap'} leaves depends on the order of the instances"
        if access.result is not None and access.result.index in used:
            return f"what its atomic {access.rmw} returns depends on the order of the instances"
    return ""
