"""Reads a BIR document, JSON or CBOR, wrapped or not, one instruction at a time."""

from __future__ import annotations

import gc
import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from racefree.errors import InputError
from racefree.neuron.document import Allocation, Block, DmaBlock, Function, Instruction, Module, Operand, Queue
from racefree.neuron.fields import Malformed, string
from racefree.neuron.instructions import read_dma_block, read_instruction
from racefree.neuron.operands import read_allocation, shard_ids
from racefree.neuron.streams import CborCursor, Cursor, JsonCursor, ValueCursor

T = TypeVar("T")

_SHARDED_INSTRUCTION_KEYS = ("predicates", "order", "unroll_dependencies")
_SHARDED_OPERAND_KEYS = ("addrs", "dynamic_ap_info", "expr")


class _Reader:
    """Builds the records of one document; `name` is how errors call it."""

    def __init__(self, cursor: Cursor, name: str) -> None:
        self.cursor = cursor
        self.name = name
        self.operands: dict[Operand, Operand] = {}
        self.shards: set[str] = set()

    def fail(self, path: str, error: Malformed) -> InputError:
        return InputError(f"{self.name}: {path}{error.path}: {error}")

    def leaf(self, path: str, read: Callable[[Any], T]) -> T:
        """The whole value here, through `read`."""
        value = self.cursor.value()
        try:
            return read(value)
        except Malformed as error:
            raise self.fail(path, error) from None

    def array(self, path: str) -> Iterator[str]:
        """The paths of the elements here; null is an empty array."""
        if self.cursor.kind() == "leaf":
            value = self.cursor.value()
            if value is not None:
                raise self.fail(path, Malformed("an array", value))
            return
        if self.cursor.kind() != "array":
            raise self.fail(path, Malformed("an array", "an object"))
        for position in self.cursor.elements():
            yield f"{path}[{position}]"

    def members(self, path: str, what: str) -> Iterator[tuple[str, str]]:
        """`(key, path)` of the object here. A repeated key is an error: one of its values would be lost."""
        if self.cursor.kind() != "object":
            raise self.fail(path, Malformed(what, self.cursor.value()))
        seen: set[str] = set()
        for key in self.cursor.members():
            if key in seen:
                raise InputError(f"{self.name}: {path}: expected each key once, found {key!r} twice")
            seen.add(key)
            yield key, f"{path}.{key}"

    def module(self, path: str = "$") -> Module:
        functions: list[Function] | None = None
        queues: list[Queue] = []
        version, arch, core = 2, "", None
        wrapped: Module | None = None
        for key, at in self.members(path, "a BIR module (an object)"):
            match key:
                case "module":
                    wrapped = self.module(at)
                case "functions":
                    functions = [*(functions or []), *self.functions(at)]
                case "nki_functions":
                    functions = [*(functions or []), *self.functions(at)]
                case "queues":
                    queues.extend(self.queue(one) for one in self.array(at))
                case "version":
                    version = self.leaf(at, _version)
                case "arch":
                    arch = self.leaf(at, string)
                case "attributes":
                    core = self.leaf(at, _core)
                case _:
                    self.cursor.value()
        if wrapped is not None and functions is None:
            return wrapped
        if functions is None:
            raise InputError(f"{self.name}: {path}: expected a BIR module: an object with the key 'functions'")
        return Module(functions=tuple(functions), queues=tuple(queues), version=version, arch=arch, core=core)

    def functions(self, path: str) -> list[Function]:
        if self.cursor.kind() == "object":
            return [self.function(at) for _, at in self.members(path, "functions by name")]
        return [self.function(at) for at in self.array(path)]

    def function(self, path: str) -> Function:
        self.shards = set()
        name: str | None = None
        attributes: tuple[str, ...] = ()
        allocations: list[Allocation] = []
        blocks: list[Block] = []
        for key, at in self.members(path, "a function (an object)"):
            match key:
                case "name":
                    name = self.leaf(at, string)
                case "attributes":
                    attributes = self.leaf(at, _names)
                case "allocations" | "storages":
                    allocations.extend(self.leaf(one, read_allocation) for one in self.array(at))
                case "blocks" | "basic_blocks":
                    blocks.extend(self.block(one) for one in self.array(at))
                case _:
                    self.cursor.value()
        if name is None:
            raise InputError(f"{self.name}: {path}.name: expected a string, found nothing")
        return Function(name, attributes, tuple(allocations), tuple(blocks), tuple(sorted(self.shards)))

    def block(self, path: str) -> Block:
        name = ""
        instructions: tuple[Instruction, ...] = ()
        for key, at in self.members(path, "a block (an object)"):
            match key:
                case "name":
                    name = self.leaf(at, string)
                case "instructions":
                    instructions = tuple(self.leaf(one, self.instruction) for one in self.array(at))
                case _:
                    self.cursor.value()
        return Block(name, instructions)

    def instruction(self, value: Any) -> Instruction:
        instruction = read_instruction(value, self.operands)
        self._note_shards(value)
        return instruction

    def _note_shards(self, value: dict[str, Any]) -> None:
        for key in _SHARDED_INSTRUCTION_KEYS:
            if key in value:
                self.shards |= shard_ids(value[key])
        for group in ("ins", "outs", "indirection_ins"):
            for operand in value.get(group) or ():
                if type(operand.get("offset")) is dict:
                    self.shards |= shard_ids(operand["offset"])
                for key in _SHARDED_OPERAND_KEYS:
                    if key in operand:
                        self.shards |= shard_ids(operand[key])

    def queue(self, path: str) -> Queue:
        name = ""
        blocks: list[DmaBlock] = []
        for key, at in self.members(path, "a queue (an object)"):
            match key:
                case "name":
                    name = self.leaf(at, string)
                case "blocks":
                    for one in self.array(at):
                        blocks.extend(self.queue_block(one))
                case _:
                    self.cursor.value()
        return Queue(name, tuple(blocks))

    def queue_block(self, path: str) -> Iterator[DmaBlock]:
        for key, at in self.members(path, "a queue block (an object)"):
            if key == "instructions":
                for one in self.array(at):
                    yield self.leaf(one, lambda value: read_dma_block(value, self.operands))
            else:
                self.cursor.value()


def _version(value: Any) -> int:
    if value not in (1, 2):
        raise Malformed("version 1 or 2", value)
    return int(value)


def _core(value: Any) -> int | None:
    if value is None or isinstance(value, list):
        return None
    if not isinstance(value, dict):
        raise Malformed("an object", value)
    core = value.get("neuron_core_id")
    if core is None or type(core) is int:
        return core
    raise Malformed("an integer", core, at=".neuron_core_id")


def _names(value: Any) -> tuple[str, ...]:
    match value:
        case None:
            return ()
        case list():
            return tuple(str(one) for one in value)
        case dict():
            return tuple(sorted(value))
    raise Malformed("an array of strings", value)


def _read(cursor: Cursor, name: str) -> Module:
    try:
        with _no_cycles():
            module = _Reader(cursor, name).module()
        cursor.finish()
    except RecursionError:
        raise InputError(f"{name}: nested too deeply to be a BIR document") from None
    return module


@contextmanager
def _no_cycles() -> Iterator[None]:
    """Holds the cycle collector: records have no cycles, and walking millions of them again and again takes long."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def from_value(value: Any, name: str = "<document>") -> Module:
    """A module from a decoded document. Raises InputError with the path of the first misfit."""
    return _read(ValueCursor(value, name), name)


def load(path: str | Path) -> Module:
    """A module from a file, JSON or CBOR by its first byte. Raises InputError with the path of the first misfit."""
    path = Path(path)
    try:
        with path.open("rb") as stream:
            if not _is_cbor(stream.read(4)):
                with path.open(encoding="utf-8-sig") as text:
                    return _read(JsonCursor(text, str(path)), str(path))
            stream.seek(0)
            return _read(CborCursor(stream, str(path)), str(path))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def _is_cbor(head: bytes) -> bool:
    """True for a CBOR map, or a tag in front of one: no JSON text starts so, not even after a byte order mark."""
    return bool(head) and 0xA0 <= head[0] <= 0xDB


def loads(text: str, name: str = "<text>") -> Module:
    """A module from JSON text."""

    return _read(JsonCursor(io.StringIO(text), name), name)
