"""Brings rows with the same small number together, in linear time."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from racefree.engines.program import I32, I64
from racefree.engines.timeline import Ragged

_DIGIT = 1 << 16
"""Keys below this sort by radix, in linear time."""


def stable_order(keys: npt.NDArray[np.integer], count: int) -> I64:
    """The rows by key, rows of one key in their given order. Keys lie in [0, count)."""
    if not len(keys) or (keys[1:] >= keys[:-1]).all():
        return np.arange(len(keys))
    if count <= _DIGIT:
        return np.argsort(keys.astype(np.uint16), kind="stable")
    low = np.argsort((keys & (_DIGIT - 1)).astype(np.uint16), kind="stable")
    high = keys >> 16
    if int(high.max()) >= _DIGIT:
        return np.argsort(keys, kind="stable")
    return low[np.argsort(high[low].astype(np.uint16), kind="stable")]


def gathered(keys: I32, values: I32, count: int) -> Ragged:
    """The values of each key, in their given order."""
    starts = np.concatenate([[0], np.cumsum(np.bincount(keys, minlength=count))]).astype(np.int64)
    return Ragged(starts, values[stable_order(keys, count)])
