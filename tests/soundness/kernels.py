"""A generated kernel as a tree of statements with its launch, and its source text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

PRELUDE = """\
import triton
import triton.language as tl


@triton.jit
def put(p, i, v, keep):
    tl.store(p + i, v, mask=keep)


@triton.jit(noinline=True)
def put_apart(p, i, v):
    tl.store(p + i * 8 + tl.arange(0, 8), v)


@triton.jit
def slot(p, k):
    if p % 2 == 0:
        return p + k
    return p


@triton.jit(noinline=True)
def slot_apart(p, k):
    return (p * k) % 16


"""


@dataclass(frozen=True, slots=True)
class Term:
    """An integer expression of the kernel, with bounds; `tile` when it has the kernel's tile shape."""

    text: str
    low: int
    high: int
    tile: bool = False


@dataclass(slots=True)
class Node:
    """A statement; a compound one has a body."""

    text: str
    body: list[Node] | None = None


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """A tensor argument: its own memory, or a view into `base` from `offset_elems` (of the base) on."""

    dtype: str
    elems: int
    base: str = ""
    offset_elems: int = 0
    values: tuple[int, ...] | None = None


@dataclass(slots=True)
class Kernel:
    """One generated launch."""

    seed: int
    nodes: list[Node]
    tensors: dict[str, TensorSpec]
    scalars: dict[str, int]
    grid: tuple[int, ...]
    num_warps: int

    @property
    def name(self) -> str:
        return f"kernel_{self.seed}"

    def source(self) -> str:
        """The text of the function."""
        parameters = ", ".join([*self.tensors, *self.scalars])
        lines = ["@triton.jit", f"def {self.name}({parameters}):", *_render(self.nodes, 1)]
        return "\n".join(lines) + "\n"


def _render(nodes: list[Node], depth: int) -> Iterator[str]:
    if not nodes:
        yield "    " * depth + "pass"
    for node in nodes:
        yield "    " * depth + node.text
        if node.body is not None:
            yield from _render(node.body, depth + 1)
