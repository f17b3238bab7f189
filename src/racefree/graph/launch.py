"""What one launch gives a kernel: its grid, its scalar arguments, where its tensors lie and what their integers hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class Storage:
    """One allocation: `nbytes` bytes from `address`. Two storages never share a byte unless their ranges meet.

    `contents` is a copy of the bytes before the launch (uint8, length `nbytes`), or None with the reason in `why_unknown`
    ("float dtype float32", "larger than the snapshot cap", "an earlier launch, which did not run, writes it", ...).
    """

    address: int
    nbytes: int
    contents: npt.NDArray[np.uint8] | None = None
    why_unknown: str = "contents were not recorded"


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor argument: element (0, ...) lies at `address`, inside `storage`. Strides count elements."""

    address: int
    element_bytes: int
    dtype: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    storage: Storage


@dataclass(frozen=True, slots=True)
class Scalar:
    """A scalar argument. A float is data: it has no integer value."""

    value: int | bool | float | None


@dataclass(frozen=True, slots=True)
class Descriptor:
    """A host tensor descriptor: a base tensor, its shape and strides in elements, and the block it moves."""

    base: Tensor
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    block_shape: tuple[int, ...]
    padding: str = "zero"


Argument = Tensor | Scalar | Descriptor


@dataclass(frozen=True, slots=True)
class LaunchFacts:
    """One config of one launch, as the rungs see it. `arguments` maps parameter names (dotted for tuple elements)."""

    kernel: str
    grid: tuple[int, int, int]
    arguments: dict[str, Argument]
    num_warps: int = 4
    warp_size: int = 32
    num_ctas: int = 1
    target: str = "cuda:80"
    triton_version: str = ""
    config: dict[str, Any] = field(default_factory=dict)
    constants: dict[str, Any] = field(default_factory=dict)

    @property
    def tensors(self) -> dict[str, Tensor]:
        """The tensors among the arguments, and the bases of descriptors, by parameter name."""
        bases = ((n, a.base if isinstance(a, Descriptor) else a) for n, a in self.arguments.items())
        return {name: base for name, base in bases if isinstance(base, Tensor)}
