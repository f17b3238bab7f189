"""Which Triton versions racefree knows, and what each of them adds to the memory model of a kernel."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from racefree.errors import MissingPackage, UnsupportedVersion

OLDEST = (3, 7)
NEWEST = (3, 9)
SUPPORTED = "3.7 to 3.9"


@dataclass(frozen=True, slots=True)
class MemoryModelRow:
    """The barriers Triton itself puts around atomics, for one (minor version, backend).

    `barrier_before_release`: a block-wide barrier stands before every release atomic, so it publishes what every lane did.
    `barrier_after_acquire`: one stands after every acquire atomic, so everything that follows is ordered after it.
    """

    name: str
    barrier_before_release: bool = False
    barrier_after_acquire: bool = False


# Read off the PTX for sm_80 with 128 threads: `st` of a 1,024 element tile, then `atomic_xchg` with each semantics, and an
# unused or used acquire followed by a tile load. 3.7.1 and 3.8.0 emit no bar.sync on either side (apart from the one that
# broadcasts a used scalar result, which holds for every version); 3.9.0 emits one before each release and after each acquire.
_ROWS: Mapping[tuple[tuple[int, int], str], tuple[bool, bool]] = {
    ((3, 7), "cuda"): (False, False),
    ((3, 8), "cuda"): (False, False),
    ((3, 9), "cuda"): (True, True),
}


def version_tuple(version: str) -> tuple[int, int] | None:
    """(major, minor) of a version string, None when it does not start with two numbers."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


def memory_model(triton_version: str, target: str) -> MemoryModelRow:
    """The row for a Triton version ("3.8.0") and a target ("cuda:80"). Nothing is added for a pair that was not measured."""
    backend = target.partition(":")[0]
    minor = version_tuple(triton_version)
    if minor is None:
        return MemoryModelRow(f"triton unknown {backend}".rstrip())
    before, after = _ROWS.get((minor, backend), (False, False))
    return MemoryModelRow(f"triton {minor[0]}.{minor[1]} {backend}".rstrip(), before, after)


def require_triton() -> Any:
    """The `triton` module of a supported version.

    Raises `MissingPackage` when Triton is not installed, `UnsupportedVersion` when its version is out of range.
    """
    try:
        import triton
    except ImportError as error:
        raise MissingPackage(
            f"taking launches needs Triton {SUPPORTED}, which cannot be imported ({error}): pip install 'racefree[triton]'"
        ) from error
    minor = version_tuple(triton.__version__)
    if minor is None or not OLDEST <= minor <= NEWEST:
        raise UnsupportedVersion(f"Triton {triton.__version__} is not supported; install a version from {SUPPORTED}")
    return triton


def require_torch() -> Any:
    """The `torch` module. Raises `MissingPackage` when it is not installed."""
    try:
        import torch
    except ImportError as error:
        raise MissingPackage(
            f"taking launches needs PyTorch, which cannot be imported ({error}): pip install torch (the CPU build is enough)"
        ) from error
    return torch
