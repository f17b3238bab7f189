"""How often each location of a counter is added to in one launch, and from what: all that its tickets can be there.

However the programs interleave, the numbers drawn at a location are those between what it holds before the launch and what
it holds after all additions. Which additions there are is found by running every program instance with plain integers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import product
from math import prod

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program, accesses
from racefree.proof.replay import Options, Unreplayable, launch_memory, run_program
from racefree.proof.replay.lanes import signed_int
from racefree.proof.schedule.initial import initial_value
from racefree.proof.smt.launch import Layout, held_storages
from racefree.proof.symbolic.records import Record
from racefree.proof.symbolic.tickets import Drawn

MOST_INSTANCES = 1024
MOST_LOCATIONS = 256
MOST_STEPS = 2_000
MOST_EVENTS = 20_000
"""Steps of one instance, and accesses of all together: each takes a fraction of a millisecond."""


def drawn_from(
    series: Sequence[Record], program: Program, facts: LaunchFacts, layout: Layout
) -> tuple[Drawn, ...] | None:
    """What is drawn at each location of a series of additions; None where the launch does not tell, or tells too much."""
    if prod(facts.grid) > MOST_INSTANCES:
        return None
    indices = frozenset(record.access.index for record in series)
    try:
        times = _times(indices, program, facts)
    except Unreplayable:
        return None
    if times is None or len(times) > MOST_LOCATIONS:
        return None
    size = series[0].access.element_bytes
    out = []
    for address, most in sorted(times.items()):
        held = initial_value(facts, address, size)
        storage = next((s for s in held_storages(facts) if s.address <= address < s.address + s.nbytes), None)
        if held is None or storage is None:
            return None
        out.append(Drawn(layout.virtual(storage, address), signed_int(held, 8 * size), most))
    return tuple(out)


def _times(indices: frozenset[int], program: Program, facts: LaunchFacts) -> Counter[int] | None:
    """How often each address is added to; None if that takes long. Raises `Unreplayable` where it is not known."""
    others = frozenset(access.index for access in accesses(program)) - indices
    options = Options(may_be_unknown=others, max_steps=MOST_STEPS)
    memory = launch_memory(program, facts)
    out: Counter[int] = Counter()
    seen = 0
    for x, y, z in product(*map(range, facts.grid)):
        events = run_program(program, facts, (x, y, z), memory, options=options)
        seen += len(events)
        if seen > MOST_EVENTS:
            return None
        for event in events:
            if event.index in indices:
                out.update(event.addresses[event.active].ravel().tolist())
    return out
