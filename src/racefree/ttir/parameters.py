"""Which kernel argument each compiled parameter is, or is a part of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from racefree.errors import Refused
from racefree.graph.program import Parameter, Ptr, Value
from racefree.ttir.reader import I1, I32, I64, Bound, Descriptor
from racefree.ttir.tree import Attribute, BlockArgument, Operation

_PART = re.compile(r"(?P<owner>.+)\.(?:(?P<list>shape|stride)\.(?P<axis>\d+)|(?P<single>padding|roundF32ToTF32))")
_SINGLES = ("padding", "roundF32ToTF32")


def read_parameters(kernel: Operation, bounds: Sequence[Bound]) -> tuple[Parameter, ...]:
    """The parameters of a kernel whose entry arguments stand for `bounds`.

    Raises `Refused`: `tuple-argument`, and `parse` when a name stands for two arguments.


    A host descriptor is passed as itself (or, where the target has none, as a pointer, i64 extents, i64 strides and flags)
    followed by i32 extents and i64 strides once more. Triton 3.8 and later name every part (`d.shape.0`); 3.7 gives all of
    them the name of the argument, and tells no more about the elements of a tuple, which are refused.
    """
    arguments = kernel.regions[0][0].arguments
    known = [_divisibility(kernel.attributes.get("arg_attrs"), position) for position in range(len(arguments))]
    entries = list(zip(map(_name, arguments), bounds, known, strict=True))
    parameters: list[Parameter] = []
    owners: set[str] = set()
    for name, run in groupby(entries, key=lambda entry: entry[0]):
        group = list(run)
        owner, part = _owner(name, owners)
        parts = (part,) if len(group) == 1 else _parts([bound for _, bound, _ in group], name)
        if not part and owner in owners:
            raise Refused("parse", f"two parameters of the compiled kernel are named {owner}")
        owners.add(owner)
        for (_, bound, divisibility), each in zip(group, parts, strict=True):
            parameters.extend(_expanded(owner, bound, divisibility, each))
    return tuple(parameters)


def _name(argument: BlockArgument) -> str:
    return argument.location.name or argument.name.removeprefix("%")


def _expanded(owner: str, bound: Bound, divisibility: int, part: str) -> Iterator[Parameter]:
    if isinstance(bound, Value):
        yield Parameter(owner, bound, divisibility, part)
        return
    rank = len(bound.extents)
    for value, name in zip(bound.parts, ("", *_axes("shape", rank), *_axes("stride", rank)), strict=True):
        yield Parameter(owner, value, part=name)


def _axes(name: str, rank: int) -> tuple[str, ...]:
    return tuple(f"{name}{axis}" for axis in range(rank))


def _owner(name: str, before: set[str]) -> tuple[str, str]:
    """The descriptor a parameter is a part of, and which part; a parameter on its own is its own owner."""
    match = _PART.fullmatch(name)
    if match is None or match["owner"] not in before:
        return name, ""
    return match["owner"], match["single"] or match["list"] + match["axis"]


def _parts(bounds: Sequence[Bound], name: str) -> tuple[str, ...]:
    """The parts of a descriptor whose parameters have one name, told by their types."""
    first, *rest = bounds
    kinds = [bound.element if isinstance(bound, Value) else None for bound in rest]
    known = [len(first.extents)] if isinstance(first, Descriptor) else range(1, 6)
    for rank in known:
        numbers = (*_axes("shape", rank), *_axes("stride", rank))
        plain = [I32] * rank + [I64] * rank
        if isinstance(first, Descriptor) and kinds == plain:
            return ("", *numbers)
        for flags in (1, 2):
            lowered = [I64] * 2 * rank + [I1] * flags
            if not isinstance(first, Value) or not isinstance(first.element, Ptr):
                continue
            if kinds == lowered:
                return ("", *numbers, *_SINGLES[:flags])
            if kinds == lowered + plain:
                return ("", *numbers, *_SINGLES[:flags], *numbers)
    raise Refused(
        "tuple-argument", f"this Triton does not tell the elements of the tuple {name} apart; use 3.8 or later"
    )


def _divisibility(details: Attribute | None, position: int) -> int:
    entry = details[position] if isinstance(details, tuple) and position < len(details) else {}
    known = entry.get("tt.divisibility", 1) if isinstance(entry, Mapping) else 1
    return known if isinstance(known, int) else 1
