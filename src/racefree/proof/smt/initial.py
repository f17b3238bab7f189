"""The one value that all locations of an atomic hold before the launch."""

from __future__ import annotations

import numpy as np

from racefree.graph.launch import LaunchFacts, Storage
from racefree.graph.program import Int, Program
from racefree.proof.replay.lanes import signed_int
from racefree.proof.replay.memory import pointer_roots, untouched_memory
from racefree.proof.schedule.initial import initial_value
from racefree.proof.smt.launch import Layout, held_storages, storage_of
from racefree.proof.symbolic.records import Record
from racefree.proof.symbolic.terms import Sum


def initially(record: Record, program: Program, facts: LaunchFacts, layout: Layout) -> int | None:
    """Signed; None where it was not recorded, or where the locations differ. Outside its tensors an atomic does not count."""
    size, address = record.access.element_bytes, record.address
    if not address.parts:
        pattern = initial_value(facts, layout.real(address.constant, held_storages(facts)), size)
        return None if pattern is None else signed_int(pattern, 8 * size)
    names = pointer_roots(program)[record.access.index]
    storages = [storage_of(facts.arguments.get(name)) for name in sorted(names or ())]
    found = {_everywhere(storage, address, size, facts, layout) for storage in storages if storage is not None}
    return found.pop() if len(found) == 1 and None not in storages else None


def _everywhere(storage: Storage, address: Sum, size: int, facts: LaunchFacts, layout: Layout) -> int | None:
    """What every element holds that a term of this form may reach in the storage."""
    phase = (address.constant - layout.virtual(storage, storage.address)) % size
    count = (storage.nbytes - phase) // size
    if count <= 0 or any(factor % size for _, factor in address.parts):
        return None
    places = storage.address + phase + size * np.arange(count, dtype=np.int64)
    lanes = untouched_memory(facts).read(places, np.ones(count, dtype=np.bool_), size, Int(8 * size))
    patterns = np.unique(lanes.bits)
    return signed_int(int(patterns[0]), 8 * size) if bool(lanes.known.all()) and len(patterns) == 1 else None
