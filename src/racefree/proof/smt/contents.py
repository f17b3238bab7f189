"""Recorded contents of tensors nobody writes, as facts about the solver's memory."""

from __future__ import annotations

import numpy as np

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Int
from racefree.proof.replay.lanes import signed_int
from racefree.proof.replay.memory import untouched_memory
from racefree.proof.smt.launch import Layout, held_storages

MAX_ELEMENTS = 600


class Contents:
    """Tables of the elements a read of a given width may see, by virtual address; None for a table that is too large."""

    def __init__(self, facts: LaunchFacts, layout: Layout) -> None:
        self._facts = facts
        self._layout = layout
        self._tables: dict[tuple[int, int], list[tuple[int, int]] | None] = {}

    def table(self, near: int, bytes_: int) -> list[tuple[int, int]] | None:
        """(virtual address, signed value) of every aligned element of the storage that `near` lies in."""
        for storage in held_storages(self._facts):
            start = self._layout.virtual(storage, storage.address)
            if start <= near < start + max(storage.nbytes, 1):
                key = (storage.address, bytes_)
                if key not in self._tables:
                    self._tables[key] = self._read(storage.address, storage.nbytes, near - start, bytes_, start)
                return self._tables[key]
        return None

    def _read(self, address: int, nbytes: int, offset: int, bytes_: int, start: int) -> list[tuple[int, int]] | None:
        first = offset % bytes_
        count = (nbytes - first) // bytes_
        if not 0 < count <= MAX_ELEMENTS:
            return None
        places = address + first + bytes_ * np.arange(count, dtype=np.int64)
        lanes = untouched_memory(self._facts).read(places, np.ones(count, dtype=np.bool_), bytes_, Int(8 * bytes_))
        if not bool(lanes.known.all()):
            return None
        shift = start - address
        return [(int(p) + shift, signed_int(int(v), 8 * bytes_)) for p, v in zip(places, lanes.bits, strict=True)]
