"""Says how an access of an engine comes to the shared byte: its pattern with the steps and the index values filled in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from racefree.engines.records import Reached

_BYTE_INDICES = "ijklmn"
_PARTITION_INDICES = "pqrstu"


@dataclass(frozen=True, slots=True)
class _Term:
    """`step * index`, the index being called `name` and running up to `count`."""

    name: str
    step: int
    count: int
    index: int


def arithmetic(byte: Reached | None, partition: Reached | None) -> str:
    """`partition p = 5 (p < 128), byte 256 + i*64 + b = 256 + 2*64 + 1 = 385 (i < 4, b < 2)`; empty where not known.

    After the name of a coordinate stand equal Python expressions, and then how far each index goes; `b` counts the bytes
    inside one element.
    """
    said = [_axis("partition", partition, _PARTITION_INDICES)] if partition else []
    said += [_axis("byte", byte, _BYTE_INDICES)] if byte else []
    return ", ".join(said)


def _axis(axis: str, reached: Reached, names: str) -> str:
    terms = list(_terms(reached, names))
    start = reached.pattern.base_bytes
    if not terms:
        return f"{axis} {start}"
    formula = _sum(start, [(term.step, term.name) for term in terms])
    filled = _sum(start, [(term.step, str(term.index)) for term in terms])
    chain = dict.fromkeys([formula, filled, str(reached.at)])
    return f"{axis} {' = '.join(chain)} ({', '.join(f'{term.name} < {term.count}' for term in terms)})"


def _terms(reached: Reached, names: str) -> Iterator[_Term]:
    """The indices that move the address, the bytes of an element last."""
    moving = [
        (dim, index) for dim, index in zip(reached.pattern.dims, reached.indices, strict=True)
        if dim.step_bytes and dim.count > 1
    ]  # fmt: skip
    for number, (dim, index) in enumerate(moving):
        name = names[number] if len(moving) <= len(names) else f"{names[0]}{number}"
        yield _Term(name, dim.step_bytes, dim.count, index)
    if reached.pattern.elem_bytes > 1:
        yield _Term("b", 1, reached.pattern.elem_bytes, reached.inside)


def _sum(start: int, products: list[tuple[int, str]]) -> str:
    said = str(start) if start else ""
    for step, factor in products:
        product = factor if abs(step) == 1 else f"{factor}*{abs(step)}"
        if said:
            said += f" {'-' if step < 0 else '+'} {product}"
        else:
            said = f"-{product}" if step < 0 else product
    return said
