"""The memory that a run may touch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt


class Memory:
    """The allocations of a launch, (address, bytes) each."""

    def __init__(self, storages: Sequence[tuple[int, int]]) -> None:
        merged: list[list[int]] = []
        for start, size in sorted(s for s in storages if s[1]):
            if merged and start <= merged[-1][1]:
                merged[-1][1] = max(merged[-1][1], start + size)
            else:
                merged.append([start, start + size])
        self._starts = np.array([start for start, _ in merged], dtype=np.int64)
        self._ends = np.array([end for _, end in merged], dtype=np.int64)

    def holds(self, addresses: npt.NDArray[np.int64], size: int) -> npt.NDArray[np.bool_]:
        """Which elements of `size` bytes lie inside."""
        if not self._starts.size:
            return np.zeros(addresses.shape, dtype=bool)
        at = np.searchsorted(self._starts, addresses, side="right") - 1
        inside: npt.NDArray[np.bool_] = (at >= 0) & (addresses + size <= self._ends[np.maximum(at, 0)])
        return inside
