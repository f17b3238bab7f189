"""Which Triton versions racefree knows."""

from __future__ import annotations

import re
from typing import Any

from racefree.errors import MissingPackage, UnsupportedVersion

OLDEST = (3, 7)
NEWEST = (3, 9)
SUPPORTED = "3.7 to 3.9"


def version_tuple(version: str) -> tuple[int, int] | None:
    """(major, minor) of a version string, None when it does not start with two numbers."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else None


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
