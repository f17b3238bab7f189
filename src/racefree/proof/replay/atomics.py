"""What an atomic leaves in memory, lane for lane, given what it found there."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from racefree.access import Kind
from racefree.graph.program import Access, Int
from racefree.proof.replay.lanes import Bits, Lanes, ones, signed, unknown

_Update = Callable[[Bits, Bits, int], Bits]

_UPDATES: dict[str, _Update] = {
    "add": lambda old, new, bits: old + new,
    "and": lambda old, new, bits: old & new,
    "or": lambda old, new, bits: old | new,
    "xor": lambda old, new, bits: old ^ new,
    "exch": lambda old, new, bits: new,
    "max": lambda old, new, bits: np.where(signed(old, bits) >= signed(new, bits), old, new),
    "min": lambda old, new, bits: np.where(signed(old, bits) <= signed(new, bits), old, new),
    "umax": lambda old, new, bits: np.maximum(old, new),
    "umin": lambda old, new, bits: np.minimum(old, new),
}


def left_behind(access: Access, old: Lanes, operands: Sequence[Lanes]) -> Lanes:
    """The value of each location after a store or atomic that found `old` there; unknown where that cannot be told.

    Two lanes on one location are not combined: apply the lanes one after the other in that case.
    """
    if access.kind is Kind.STORE:
        return operands[0]
    if access.kind is Kind.LOAD:
        return old
    element = access.operands[0].element
    if not isinstance(element, Int):
        return operands[0] if access.kind is Kind.RMW and access.rmw == "exch" else unknown(old.shape)
    if access.kind is Kind.CAS:
        expected, desired = operands
        swaps = old.bits == expected.bits
        decided = old.known & expected.known
        known = decided & np.where(swaps, desired.known, True)
        bits = np.where(swaps, desired.bits, old.bits)
    else:
        update = _UPDATES.get(access.rmw or "")
        if update is None:
            return unknown(old.shape)
        known = operands[0].known if access.rmw == "exch" else old.known & operands[0].known
        bits = np.asarray(update(old.bits, operands[0].bits, element.bits)) & ones(element.bits)
    known = np.broadcast_to(known, old.shape)
    return Lanes(np.where(known, bits, np.uint64(0)).reshape(old.shape), known)
