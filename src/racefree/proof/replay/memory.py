"""The bytes of a launch's tensors before it starts, and which of them may be overwritten while it runs."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from racefree.graph.launch import Descriptor, LaunchFacts, Storage, Tensor
from racefree.graph.program import Element, For, If, Op, Program, Ptr, Value, While, accesses, walk
from racefree.proof.replay.lanes import Bits, Known, Lanes, element_bits, ones


@dataclass(slots=True)
class Memory:
    """Initial contents by byte address. Bytes that may change, were not recorded or lie outside are unknown."""

    storages: tuple[Storage, ...]
    changing: list[npt.NDArray[np.bool_] | None] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.changing:
            self.changing = [None] * len(self.storages)

    def mark_storage(self, address: int) -> None:
        """Every byte of the storages that hold `address` may change during the launch."""
        for number, storage in enumerate(self.storages):
            if storage.address <= address < storage.address + max(storage.nbytes, 1):
                self.changing[number] = _everything(storage.nbytes)

    def mark_all(self) -> None:
        """Every byte may change during the launch."""
        self.changing = [_everything(s.nbytes) for s in self.storages]

    def mark_bytes(self, addresses: npt.NDArray[np.int64], size_bytes: int) -> bool:
        """The given elements may change during the launch; true when some byte was not marked before."""
        grown = False
        each = (addresses.reshape(-1)[:, None] + np.arange(size_bytes)).reshape(-1)
        for number, storage in enumerate(self.storages):
            offset = each - storage.address
            offset = offset[(offset >= 0) & (offset < storage.nbytes)]
            if offset.size == 0:
                continue
            marked = self.changing[number]
            if marked is None:
                marked = self.changing[number] = np.zeros(storage.nbytes, dtype=np.bool_)
            if not marked.flags.writeable:  # every byte of it is marked
                continue
            grown = grown or not bool(marked[offset].all())
            marked[offset] = True
        return grown

    def holds(self, addresses: npt.NDArray[np.int64], size_bytes: int) -> Known:
        """Which of the elements lie inside one storage entirely."""
        inside = np.zeros(addresses.shape, dtype=np.bool_)
        for storage in self.storages:
            inside |= (addresses >= storage.address) & (addresses + size_bytes <= storage.address + storage.nbytes)
        return inside

    def read(self, addresses: npt.NDArray[np.int64], active: Known, size_bytes: int, element: Element) -> Lanes:
        """The little-endian value at each active address, known where all its bytes are."""
        bits = np.zeros(addresses.shape, dtype=np.uint64)
        known = np.array(active, dtype=np.bool_)
        if size_bytes > 8 or not 1 <= element_bits(element) <= 64:
            return Lanes(bits, np.zeros_like(known))
        for offset in range(size_bytes):
            byte, sure = self._byte(addresses + np.int64(offset), known)
            bits |= np.left_shift(byte, np.uint64(8 * offset))
            known &= sure
        top = ones(element_bits(element))
        known &= bits <= top
        return Lanes(np.where(known, bits, np.uint64(0)), known)

    def _byte(self, addresses: npt.NDArray[np.int64], wanted: Known) -> tuple[Bits, Known]:
        value = np.zeros(addresses.shape, dtype=np.uint64)
        sure = np.zeros(addresses.shape, dtype=np.bool_)
        spoiled = np.zeros(addresses.shape, dtype=np.bool_)
        for storage, changing in zip(self.storages, self.changing, strict=True):
            offset = addresses - np.int64(storage.address)
            inside = wanted & (offset >= 0) & (offset < storage.nbytes)
            if not inside.any():
                continue
            at = np.where(inside, offset, 0)
            if storage.contents is not None:
                value = np.where(inside & ~sure, storage.contents[at].astype(np.uint64), value)
                sure |= inside
            if changing is not None:
                spoiled |= inside & changing[at]
        return value, sure & ~spoiled


def storages_of(facts: LaunchFacts) -> tuple[Storage, ...]:
    """The storages of all tensor arguments, each once, by address."""
    found: dict[tuple[int, int], Storage] = {}
    for argument in facts.arguments.values():
        tensor = argument.base if isinstance(argument, Descriptor) else argument
        if isinstance(tensor, Tensor):
            storage = tensor.storage
            key = (storage.address, storage.nbytes)
            if key not in found or found[key].contents is None:
                found[key] = storage
    return tuple(found[key] for key in sorted(found))


def untouched_memory(facts: LaunchFacts) -> Memory:
    """Contents as recorded, as if nothing wrote during the launch. Callers mark what changes."""
    return Memory(storages_of(facts))


def launch_memory(program: Program, facts: LaunchFacts) -> Memory:
    """Contents as recorded, with every storage that some write of the program may point into marked as changing."""
    memory = untouched_memory(facts)
    roots = pointer_roots(program)
    for access in accesses(program):
        if not access.kind.writes:
            continue
        if roots[access.index] is None:
            memory.mark_all()
            return memory
        for name in roots[access.index] or ():
            argument = facts.arguments.get(name)
            tensor = argument.base if isinstance(argument, Descriptor) else argument
            if not isinstance(tensor, Tensor):
                memory.mark_all()
                return memory
            _mark_meeting(memory, tensor.storage)
    return memory


def _everything(count: int) -> npt.NDArray[np.bool_]:
    """A mark on each of `count` bytes, which takes no memory and cannot be changed: storages may be very large."""
    return np.broadcast_to(np.bool_(True), (count,))


def _mark_meeting(memory: Memory, storage: Storage) -> None:
    for number, other in enumerate(memory.storages):
        if other.address < storage.address + storage.nbytes and storage.address < other.address + other.nbytes:
            memory.changing[number] = _everything(other.nbytes)


def pointer_roots(program: Program) -> dict[int, frozenset[str] | None]:
    """Per access index: the parameters its pointer may be derived from, or None when it may point anywhere."""
    sources = _pointer_sources(program)
    names = {p.value.index: p.name for p in program.parameters}
    return {a.index: _roots(a.pointer, sources, names) for a in accesses(program)}


def _pointer_sources(program: Program) -> dict[int, list[Value] | None]:
    """Per pointer value: the pointers it may be computed from; None when it comes from an integer or from memory."""
    sources: dict[int, list[Value] | None] = {}

    def add(result: Value, origins: list[Value]) -> None:
        if isinstance(result.element, Ptr):
            known = sources.setdefault(result.index, [])
            if known is not None:
                known.extend(o for o in origins if isinstance(o.element, Ptr))

    for statement in walk(program.body):
        match statement:
            case Op():
                for result in statement.results:
                    add(result, list(statement.operands))
                    if statement.name == "tt.int_to_ptr" or not statement.operands:
                        sources[result.index] = None
            case For():
                for groups in zip(statement.carried, statement.inits, statement.yields, statement.results, strict=True):
                    add(groups[0], [groups[1], groups[2]])
                    add(groups[3], [groups[1], groups[2]])
            case If():
                for result, then, other in zip(
                    statement.results, statement.then_yields, statement.else_yields, strict=True
                ):
                    add(result, [then, other])
            case While():
                for argument, first, later in zip(
                    statement.before_args, statement.inits, statement.after_yields, strict=True
                ):
                    add(argument, [first, later])
                for argument, result, source in zip(
                    statement.after_args, statement.results, statement.forwarded, strict=True
                ):
                    add(argument, [source])
                    add(result, [source])
            case _:
                pass
    return sources


def _roots(pointer: Value, sources: dict[int, list[Value] | None], names: dict[int, str]) -> frozenset[str] | None:
    found: set[str] = set()
    seen: set[int] = set()
    todo = [pointer.index]
    while todo:
        index = todo.pop()
        if index in seen:
            continue
        seen.add(index)
        if index in names:
            found.add(names[index])
            continue
        origins = sources.get(index)
        if not origins:
            return None
        todo.extend(o.index for o in origins)
    return frozenset(found)
