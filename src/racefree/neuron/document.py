"""A BIR document as typed records: what was written, nothing resolved and nothing judged.

Names refer to other records by string, exactly as in the document: an instruction may name a later one, and a name
may repeat.
Addresses and partition counts are in bytes and partitions; access patterns count elements of the operand's own dtype.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, IntFlag

DTYPE_BYTES: dict[str, int] = {
    **dict.fromkeys(
        ("uint8", "int8", "bool", "float8e3", "float8e4", "float8e5", "float8_e4m3", "float8_e4m3fn", "float8_e8m0fnu"),
        1,
    ),
    **dict.fromkeys(("uint16", "int16", "bfloat16", "float16", "float4_e2m1fn_x4"), 2),
    **dict.fromkeys(("uint32", "int32", "float32", "float32r", "float8_e4m3fn_x4", "float8_e5m2_x4"), 4),
    **dict.fromkeys(("uint64", "int64"), 8),
}

ENGINES = ("Unassigned", "Pool", "Activation", "PE", "DMA", "DVE", "SP", "ALL")
DATA_PATH_ENGINES = ("Pool", "Activation", "PE", "DVE", "SP")


class MemoryType(IntFlag):
    """Where a location lives; the wire form is the name, older dumps write the number."""

    Unallocated = 1
    Input = 2
    Output = 4
    DRAM = 8
    SB = 16
    PSUM = 32
    RNGSTATE = 64
    REG = 128

    @property
    def on_chip(self) -> bool:
        return self in (MemoryType.SB, MemoryType.PSUM)


class EdgeKind(Enum):
    """Why one instruction must follow another. `Invalid` also stands for numbers without a documented meaning."""

    Invalid = 0
    Ordered = 1
    Anti = 2
    Output = 3
    Flow = 4


@dataclass(frozen=True, slots=True)
class Alias:
    """Another DRAM location that shares bytes with this one: surely (`must`) or perhaps."""

    location: str
    must: bool


@dataclass(frozen=True, slots=True)
class MemoryLocation:
    """One placed tensor. On chip `dims` is (partitions, bytes per partition); in DRAM its product is the byte size."""

    name: str
    type: MemoryType
    addr: int = 0
    dims: tuple[int, ...] = ()
    bank: int = 0
    base: int = 0
    allocated: bool = True
    alias: tuple[Alias, ...] = ()
    shared: bool = False
    remote_target: str = ""
    pointer_to: str = ""


@dataclass(frozen=True, slots=True)
class Allocation:
    """A logical tensor and the locations that hold it."""

    name: str
    kind: str = "Internal"
    storage: str = "memory_location_set"
    addr_space: str = "Local"
    dtype: str = ""
    locations: tuple[MemoryLocation, ...] = ()


Pairs = tuple[tuple[int, int], ...]
"""`(step, num)` pairs in elements, slowest dimension first."""


@dataclass(frozen=True, slots=True)
class PhysicalAp:
    """A placed access pattern. `dynamic` holds the canonical text of its run-time part, empty when fully static.

    `offset` is None when it is an expression that only run time or a loop counter can evaluate.
    """

    memref: str
    memset: str
    dtype: str
    ap: Pairs
    offset: int | None = 0
    dynamic: str = ""
    owner_function: str = ""


@dataclass(frozen=True, slots=True)
class SymbolicAp:
    """A pattern whose address depends on loop counters."""

    memset: str
    dtype: str


@dataclass(frozen=True, slots=True)
class RegisterAp:
    """A pattern whose start address a register holds."""

    memset: str
    dtype: str
    register: str


@dataclass(frozen=True, slots=True)
class RegisterAccess:
    """A register read or written; no memory."""

    register: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """A constant operand; no memory, always an input."""

    kind: str


@dataclass(frozen=True, slots=True)
class UnknownOperand:
    """An operand of a kind this reader does not know: nothing may be claimed about the bytes it touches."""

    kind: str


Operand = PhysicalAp | SymbolicAp | RegisterAp | RegisterAccess | Immediate | UnknownOperand


@dataclass(frozen=True, slots=True)
class Wait:
    """Hold the engine until semaphore `id` has reached `value`; `source` is the producer the compiler had in mind."""

    source: str
    id: int
    value: int | None
    odd: str = ""
    """A key or mode whose meaning is unknown, empty when the wait is a plain greater-or-equal test."""


@dataclass(frozen=True, slots=True)
class Update:
    """Add `value` to semaphore `id` when the work completes; `odd` as for waits."""

    id: int
    value: int
    odd: str = ""


@dataclass(frozen=True, slots=True)
class SyncInfo:
    waits: tuple[Wait, ...] = ()
    updates: tuple[Update, ...] = ()
    odd: str = ""


NO_SYNC = SyncInfo()


@dataclass(frozen=True, slots=True)
class Dependency:
    """This instruction must follow `source`; `distances` count loop iterations back (empty: same iteration)."""

    source: str
    kind: EdgeKind
    distances: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class LoopAxis:
    """A structured loop's range, half open."""

    name: str
    lower: int
    upper: int
    stride: int

    @property
    def trips(self) -> int:
        return max(0, -(-(self.upper - self.lower) // self.stride)) if self.stride else 0


@dataclass(frozen=True, slots=True)
class Control:
    """What only control, barrier and reset instructions carry."""

    on_true: str = ""
    on_false: str = ""
    target: str = ""
    sema_group: tuple[int, ...] = ()
    id: int | None = None
    cores: tuple[int, ...] = ()
    cores_listed: bool = False
    blocks: tuple[Block, ...] = ()
    comp_op: str = ""
    axis: LoopAxis | None = None
    is_reset_sema: bool = False


NO_CONTROL = Control()


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `name` need not be unique within a function."""

    name: str
    opcode: str
    engine: str = "Unassigned"
    ins: tuple[Operand, ...] = ()
    outs: tuple[Operand, ...] = ()
    indirections: tuple[Operand, ...] = ()
    dependencies: tuple[Dependency, ...] = ()
    loop_carried: tuple[Dependency, ...] = ()
    sync: SyncInfo = NO_SYNC
    queue: str = ""
    dma_blocks: tuple[str, ...] = ()
    can_read_uninit: bool = False
    control: Control = NO_CONTROL
    symbolic: str = ""
    """The key that makes this stand for several runs or none (a loop nest, a predicate), empty when it runs once."""
    operation: str = ""
    file: str = ""
    line: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    name: str
    instructions: tuple[Instruction, ...] = ()


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    attributes: tuple[str, ...] = ()
    allocations: tuple[Allocation, ...] = ()
    blocks: tuple[Block, ...] = ()
    shard_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class DmaBlock:
    """The descriptors one trigger starts; its completion applies `sync.updates`."""

    name: str
    ins: tuple[Operand, ...] = ()
    outs: tuple[Operand, ...] = ()
    indirections: tuple[Operand, ...] = ()
    sync: SyncInfo = NO_SYNC
    can_read_uninit: bool = False
    opcodes: tuple[str, ...] = ()
    """Those of its descriptors, each once."""


@dataclass(frozen=True, slots=True)
class Queue:
    name: str
    blocks: tuple[DmaBlock, ...] = ()


@dataclass(frozen=True, slots=True)
class Module:
    """One core's program. `core` is None before the program is split over the cores of a logical core."""

    functions: tuple[Function, ...]
    queues: tuple[Queue, ...] = ()
    version: int = 2
    arch: str = ""
    core: int | None = None
