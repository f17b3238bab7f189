"""Where a launch's tensors are taken to lie: at addresses that follow from the launch alone, so that equal launches are equal.

An allocator puts the same tensors elsewhere each time, which changes nothing about races: storages that overlap keep their
distances and every storage keeps its alignment, and the way to prove never lets one storage run into another.
Only a kernel that turns addresses into data, or data into addresses, can tell the difference.
"""

from __future__ import annotations

from dataclasses import replace

from racefree.graph.launch import Argument, Descriptor, LaunchFacts, Storage, Tensor

ALIGNMENT_BYTES = 64
"""Kept by every storage. Elements and what Triton assumes about pointers are no wider than 16 bytes."""

_APART_BYTES = 1 << 40

_TELLS_ADDRESSES = ("tt.ptr_to_int", "tt.int_to_ptr", "!tt.ptr<!tt.ptr", "inline_asm", "extern_elementwise")
"""What stands in the text of a module (or may be hidden behind its operation) that uses addresses as data."""


def tells_addresses(module_text: str) -> bool:
    """Whether a kernel may use the addresses of its tensors as data, so that they must stay what they are."""
    return any(word in module_text for word in _TELLS_ADDRESSES)


def relocated(facts: LaunchFacts, module_text: str) -> LaunchFacts:
    """The launch with its storages at addresses that do not depend on where an allocator put them, if that may be."""
    if tells_addresses(module_text):
        return facts
    shifts = _shifts([tensor.storage for tensor in map(_tensor, facts.arguments.values()) if tensor is not None])
    known: dict[int, Storage] = {}
    arguments = {name: _moved(argument, shifts, known) for name, argument in facts.arguments.items()}
    return replace(facts, arguments=arguments)


def _tensor(argument: Argument) -> Tensor | None:
    tensor = argument.base if isinstance(argument, Descriptor) else argument
    return tensor if isinstance(tensor, Tensor) else None


def _shifts(storages: list[Storage]) -> dict[int, int]:
    """How far each storage moves, by its address: those that overlap together, in the order the arguments name them."""
    ranges: list[tuple[int, int]] = []
    for start, end in sorted({(s.address, s.address + s.nbytes) for s in storages if s.nbytes}):
        if ranges and start < ranges[-1][1]:
            ranges[-1] = ranges[-1][0], max(ranges[-1][1], end)
        else:
            ranges.append((start, end))
    shifts: dict[int, int] = {}
    places: dict[tuple[int, int], int] = {}
    free = _APART_BYTES
    for storage in storages:
        if not storage.nbytes:
            continue
        start, end = next(r for r in ranges if r[0] <= storage.address < r[1])
        if (start, end) not in places:
            places[start, end] = free + start % ALIGNMENT_BYTES
            free = (places[start, end] + end - start + 2 * _APART_BYTES - 1) // _APART_BYTES * _APART_BYTES
        shifts[storage.address] = places[start, end] - start
    return shifts


def _moved(argument: Argument, shifts: dict[int, int], known: dict[int, Storage]) -> Argument:
    match argument:
        case Descriptor():
            return replace(argument, base=_moved_tensor(argument.base, shifts, known))
        case Tensor():
            return _moved_tensor(argument, shifts, known)
        case _:
            return argument


def _moved_tensor(tensor: Tensor, shifts: dict[int, int], known: dict[int, Storage]) -> Tensor:
    storage = tensor.storage
    shift = shifts[storage.address] if storage.nbytes else 0
    if id(storage) not in known:
        known[id(storage)] = replace(storage, address=storage.address + shift)
    return replace(tensor, address=tensor.address + shift, storage=known[id(storage)])
