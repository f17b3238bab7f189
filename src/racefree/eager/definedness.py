"""Follows which bytes of unknown memory a run has given a value, and stops it before it looks at one that has none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from racefree.access import Kind
from racefree.eager.memory import Memory
from racefree.eager.trace import Place


class Undefined(Exception):
    """The run looks at memory whose contents are not known, or leaves its tensors; the message says where."""


class Definedness:
    """Watches a run as a trace does. Of its `memory` the ranges that are `unknown` hold nothing to rely on.

    They are (address, bytes). Outside of its memory a run meets nothing that is known either.
    """

    def __init__(self, memory: Memory, unknown: Sequence[tuple[int, int]]) -> None:
        self._memory = memory
        self._unknown = {start: np.zeros(nbytes, dtype=bool) for start, nbytes in unknown}

    def access(
        self,
        program: int,
        kind: Kind,
        place: Place,
        element_bytes: int,
        addresses: npt.NDArray[np.int64],
        lanes: npt.NDArray[np.int64],
        *,
        apart: bool = False,
    ) -> None:
        """Raises `Undefined` outside of memory, and for a load or an atomic of bytes that nothing gave a value before."""
        if not self._memory.holds(addresses, element_bytes).all():
            raise Undefined(f"it leaves the memory of its tensors in line {place[1]}")
        touched = addresses[:, None] + np.arange(element_bytes)
        for start, defined in self._unknown.items():
            at = touched[(touched >= start) & (touched < start + defined.size)] - start
            if kind is not Kind.STORE and not defined[at].all():
                raise Undefined(f"it reads memory in line {place[1]} whose contents are not known")
            if kind.writes:
                defined[at] = True

    def before_atomic(self, program: int, addresses: npt.NDArray[np.int64], *, acquires: bool) -> None:
        pass

    def after_atomic(self, program: int, addresses: npt.NDArray[np.int64], *, releases: bool) -> None:
        pass

    @property
    def known(self) -> frozenset[int]:
        """The start addresses of what was unknown and is known now, to the last byte."""
        return frozenset(start for start, defined in self._unknown.items() if defined.all())
