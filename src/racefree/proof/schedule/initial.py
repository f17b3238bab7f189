"""What an atomic cell holds before the launch."""

from __future__ import annotations

import numpy as np

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Int
from racefree.proof.replay.memory import untouched_memory


def initial_value(facts: LaunchFacts, address: int, size_bytes: int) -> int | None:
    """The bits recorded there, or None when they were not recorded."""
    lanes = untouched_memory(facts).read(
        np.array([address], dtype=np.int64), np.ones(1, dtype=np.bool_), size_bytes, Int(8 * size_bytes)
    )
    return lanes.scalar()
