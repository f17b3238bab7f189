"""From a seed to a kernel."""

from __future__ import annotations

import random

from grammar import LARGE, Generator, Scale
from kernels import Kernel
from patterns import PATTERNS
from tiled_patterns import TILED_PATTERNS


def generate(seed: int, *, large: bool = False) -> Kernel:
    """The kernel of a seed: the same text for the same seed, always. Large ones have more programs, lanes and iterations."""
    return Generator(random.Random(seed), (*PATTERNS, *TILED_PATTERNS), LARGE if large else Scale()).kernel(seed)
