"""Makes a failing generated kernel smaller while it keeps failing."""

from __future__ import annotations

import copy
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from types import ModuleType

from judging import write_module
from kernels import Kernel, Node

Fails = Callable[[Kernel, ModuleType], bool]


def reduced(kernel: Kernel, fails: Fails) -> Kernel:
    """Statements are dropped or replaced by their bodies, and the launch is shrunk, until nothing more can go."""
    with tempfile.TemporaryDirectory() as folder:
        numbers = count()

        def still(candidate: Kernel) -> bool:
            try:
                module = write_module(Path(folder) / f"reduced_{next(numbers)}.py", [candidate])
                return fails(candidate, module)
            except Exception:
                return False

        changed = True
        while changed:
            changed = False
            for candidate in _smaller(kernel):
                if still(candidate):
                    kernel, changed = candidate, True
                    break
        return kernel


def _smaller(kernel: Kernel) -> Iterator[Kernel]:
    for path in _paths(kernel.nodes):
        for new in _without(kernel.nodes, path):
            yield replace(kernel, nodes=new)
    for axis, extent in enumerate(kernel.grid):
        for less in range(1, extent):
            yield replace(kernel, grid=(*kernel.grid[:axis], less, *kernel.grid[axis + 1 :]))


def _paths(nodes: list[Node]) -> Iterator[tuple[int, ...]]:
    """All statements, the last first: those nothing else needs."""
    for number in reversed(range(len(nodes))):
        yield (number,)
        for deeper in _paths(nodes[number].body or []):
            yield (number, *deeper)


def _without(nodes: list[Node], path: tuple[int, ...]) -> Iterator[list[Node]]:
    new = copy.deepcopy(nodes)
    parent = new
    for step in path[:-1]:
        parent = parent[step].body or []
    gone = parent[path[-1]]
    after = parent[path[-1] + 1 : path[-1] + 2]
    if gone.text.startswith("if ") and after and after[0].text == "else:":
        del parent[path[-1] + 1]
    del parent[path[-1]]
    yield copy.deepcopy(new)
    if gone.body is not None and not gone.text.startswith(("for", "while")):
        parent[path[-1] : path[-1]] = gone.body
        yield new
