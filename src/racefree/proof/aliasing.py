"""Whether two arguments of one storage overlap, or a race between them comes from an access that leaves its own."""

from __future__ import annotations

from racefree.access import Dim, Pattern
from racefree.geometry.overlap import overlaps
from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Tensor
from racefree.proof.outcome import Side


def tensor_of(facts: LaunchFacts, name: str) -> Tensor | None:
    argument: Argument | None = facts.arguments.get(name)
    base = argument.base if isinstance(argument, Descriptor) else argument
    return base if isinstance(base, Tensor) else None


def share_storage(one: Tensor, other: Tensor) -> bool:
    """True when their storages have bytes in common."""
    first, second = one.storage, other.storage
    return first.address < second.address + second.nbytes and second.address < first.address + first.nbytes


def overlap(one: Tensor, other: Tensor) -> bool:
    """False when the elements of the tensors surely have no byte in common."""
    return overlaps(_elements(one), _elements(other)) is not False


def leaves(side: Side, tensor: Tensor) -> bool:
    """True when the access surely touches bytes that are no element of the tensor."""
    if side.address_bytes is None:
        return False
    return overlaps(Pattern(side.address_bytes, side.access.element_bytes), _elements(tensor)) is False


def _elements(tensor: Tensor) -> Pattern:
    size = tensor.element_bytes
    dims = tuple(Dim(size * stride, count) for stride, count in zip(tensor.strides, tensor.shape, strict=True))
    return Pattern(tensor.address, size, dims)
