"""From a seed to a kernel."""

from __future__ import annotations

import random

from grammar import Generator
from kernels import Kernel
from patterns import PATTERNS


def generate(seed: int) -> Kernel:
    """The kernel of a seed: the same text for the same seed, always."""
    return Generator(random.Random(seed), PATTERNS).kernel(seed)
