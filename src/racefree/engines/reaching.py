"""How two accesses come to the byte they share: each pattern with the indices that lead there."""

from __future__ import annotations

from racefree.access import Pattern
from racefree.engines.records import Reached
from racefree.geometry import Unknown, element_start, overlap_witness

Reaches = tuple[Reached, Reached] | tuple[None, None]
"""One address as each of two patterns comes to it, or that it is not known."""


def reach(one: Pattern, other: Pattern) -> Reaches:
    """An address that both patterns touch; not known when they share none or it could not be decided."""
    witness = overlap_witness(one, other)
    if witness is None or isinstance(witness, Unknown):
        return None, None
    return _reached(one, witness.a, witness.byte), _reached(other, witness.b, witness.byte)


def _reached(pattern: Pattern, indices: tuple[int, ...], address: int) -> Reached:
    return Reached(pattern, indices, address - element_start(pattern, indices), address)
