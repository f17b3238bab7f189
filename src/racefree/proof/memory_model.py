"""What Triton itself adds around atomics, by version and target: a row of facts, never a guess."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MemoryModel:
    """One row. `known` is false for a version or target nothing was measured on: then nothing is added, and a pair that an
    added barrier would order is neither clean nor racing.

    `warps_for_result_barrier` is with how many warps, or more, the result of an atomic on a scalar comes with a barrier.
    """

    name: str
    known: bool
    barrier_before_release: bool = False
    barrier_after_acquire: bool = False
    barrier_in_reduction: bool = False
    warps_for_result_barrier: int | None = None


NOTHING_ADDED = MemoryModel("nothing added", known=False)

# Read off the PTX that each version emits for a vector store followed by a releasing exchange, and for an acquiring atomic
# followed by a vector load: 3.7 and 3.8 put no block-wide barrier there, 3.9 puts one before and one after. All three reduce
# and scan a one-dimensional tile that spans several warps through shared memory, with bar.sync between the loads that feed it
# and the stores after it; a tile whose rows lie within one warp is reduced without. All three hand the result of an atomic on
# a scalar to all threads through shared memory, with bar.sync behind the atomic, where the result is used, and only there; 3.9
# hands it on by a shuffle, which orders no memory, if there is one warp.
_ROWS = {
    ("3.7", "cuda"): MemoryModel("triton 3.7 cuda", known=True, barrier_in_reduction=True, warps_for_result_barrier=1),
    ("3.8", "cuda"): MemoryModel("triton 3.8 cuda", known=True, barrier_in_reduction=True, warps_for_result_barrier=1),
    ("3.9", "cuda"): MemoryModel(
        "triton 3.9 cuda",
        known=True,
        barrier_before_release=True,
        barrier_after_acquire=True,
        barrier_in_reduction=True,
        warps_for_result_barrier=2,
    ),
}


def memory_model(triton_version: str, target: str) -> MemoryModel:
    """The row for a Triton version ("3.8.0") and target ("cuda:80")."""
    version = ".".join(triton_version.split(".")[:2])
    backend = target.split(":")[0]
    row = _ROWS.get((version, backend))
    return (
        row
        if row is not None
        else MemoryModel(f"triton {version or '?'} {backend or '?'} (nothing added)", known=False)
    )
