"""The operation tree of a module in generic form: plain data, one level above text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Raw:
    """The text of an attribute nobody reads (or reads as text)."""

    text: str


@dataclass(frozen=True, slots=True)
class Symbol:
    """A reference to a named operation; `name` comes without the `@`."""

    name: str


@dataclass(frozen=True, slots=True)
class Dense:
    """Integer elements of a tensor constant: `values` holds one element when `splat`, else all in row-major order."""

    values: tuple[int, ...]
    splat: bool


Attribute = int | bool | str | Raw | Symbol | Dense | tuple["Attribute", ...] | Mapping[str, "Attribute"]


@dataclass(frozen=True, slots=True)
class Frame:
    """One source position of a location."""

    file: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Location:
    """`frames` run from the innermost position to the outermost call site; `name` is the innermost name."""

    frames: tuple[Frame, ...] = ()
    name: str = ""


UNKNOWN = Location()


@dataclass(frozen=True, slots=True)
class BlockArgument:
    name: str
    type: str
    location: Location


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation. Values are SSA names as printed (`%0`, `%1#2`), types are text."""

    name: str
    operands: tuple[str, ...]
    operand_types: tuple[str, ...]
    results: tuple[str, ...]
    result_types: tuple[str, ...]
    attributes: Mapping[str, Attribute]
    successors: tuple[str, ...]
    regions: tuple[Region, ...]
    location: Location


@dataclass(frozen=True, slots=True)
class Block:
    label: str
    arguments: tuple[BlockArgument, ...]
    operations: tuple[Operation, ...]


Region = tuple[Block, ...]


def walk(operation: Operation) -> Iterator[Operation]:
    """The operation and everything nested in it."""
    yield operation
    for region in operation.regions:
        for block in region:
            for inner in block.operations:
                yield from walk(inner)
