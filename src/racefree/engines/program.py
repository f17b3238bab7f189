"""What an engine program is: timelines of instructions, the bytes they touch, and everything that orders them.

Front ends build one with `racefree.engines.builder.ProgramBuilder`; the checker reads nothing else. A program is
columnar, so that a million instructions fit in a few tens of megabytes: the index of an instruction is its place in
document order, and the instructions of one engine, in that order, are its timeline.

Three points of an instruction matter. It *starts* once its waits hold and its engine is free. Its *inputs were read* at
some later moment, and it *completed* at or after that. An ordinary instruction completes before the next one of its
engine starts; an asynchronous one (`queue` or not) only starts there, and completes whenever it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, IntEnum, IntFlag

import numpy as np
import numpy.typing as npt

from racefree.access import Pattern, Site
from racefree.errors import Refusal
from racefree.geometry import PatternArray

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
U8 = npt.NDArray[np.uint8]


class MemoryKind(str, Enum):
    """What kind of memory a space is. On-chip kinds have two axes: the partition, and the byte within the partition."""

    DRAM = "DRAM"
    SBUF = "SBUF"
    PSUM = "PSUM"
    SHARED = "SHARED"
    REGISTER = "REGISTER"


@dataclass(frozen=True, slots=True)
class Space:
    """Bytes with comparable addresses: one DRAM arena, the SBUF, one PSUM bank. Two spaces never share a byte."""

    kind: MemoryKind
    name: str
    bank: int = 0


@dataclass(frozen=True, slots=True)
class Footprint:
    """The bytes of one access: every byte of `bytes`, in every partition of `partitions` (None: one axis only).

    `partitions` counts partitions: an element size of 1, base and steps in partitions. An access whose bytes differ
    from partition to partition is several footprints.
    """

    space: int
    bytes: Pattern
    partitions: Pattern | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Footprints:
    """Many footprints as columns. Row i of `partitions` is partition 0 alone where the space has one axis."""

    space: I32
    bytes: PatternArray
    partitions: PatternArray
    two_axes: U8

    def __len__(self) -> int:
        return len(self.space)

    @classmethod
    def of(cls, footprints: Sequence[Footprint]) -> Footprints:
        """The footprints as columns. Raises OverflowError when an address does not fit 64 bits."""
        return cls(
            space=np.array([f.space for f in footprints], dtype=np.int32),
            bytes=PatternArray.of([f.bytes for f in footprints]),
            partitions=PatternArray.of([f.partitions or Pattern(0, 1) for f in footprints]),
            two_axes=np.array([f.partitions is not None for f in footprints], dtype=np.uint8),
        )

    def __getitem__(self, row: int) -> Footprint:
        if not 0 <= row < len(self):
            raise IndexError(row)
        partitions = self.partitions.pattern(row) if self.two_axes[row] else None
        return Footprint(int(self.space[row]), self.bytes.pattern(row), partitions)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A named memory location. `initialised`: it holds data before the program starts (an input, a constant)."""

    name: str
    space: int
    initialised: bool = False


class InstructionFlag(IntFlag):
    """What is special about an instruction."""

    NONE = 0
    ASYNC = 1
    """Completes off its engine's timeline."""
    READS_UNINITIALISED = 2
    """Marked as allowed to read memory that nothing wrote; its writes are not excused."""
    EXEMPT_OPCODE = 4
    """The compiler's own checker never reports it."""
    ACCUMULATES = 8
    """A scatter-accumulate, which the compiler's own checker chains to the previous one."""


class AccessFlag(IntFlag):
    """What is special about an access."""

    NONE = 0
    WRITE = 1
    INEXACT = 2
    """The footprint contains the bytes touched, but may be larger (the address is known at run time only)."""
    UNSEEN = 4
    """The compiler's own checker does not look at this kind of operand."""


class DependencyKind(IntEnum):
    """Why one instruction must wait for another; all kinds but the last give the same order."""

    INVALID = 0
    ORDERED = 1
    ANTI = 2
    OUTPUT = 3
    FLOW = 4
    AFTER_START = 5
    """The target starts after the source started, not after it completed."""


class WaitMode(IntEnum):
    """When a wait lets its instruction start. Nothing is consumed."""

    AT_LEAST = 0
    EQUAL = 1
    UNKNOWN = 255


class UpdateMode(IntEnum):
    """What an update does to a semaphore."""

    ADD = 0
    SUBTRACT = 1
    SET = 2
    UNKNOWN = 255


class Timing(IntEnum):
    """The point of an instruction at which its update happens."""

    INPUTS_READ = 0
    COMPLETED = 1
    RUNNING = 2
    """Some time between start and completion, of an asynchronous instruction: the counts it adds before its last one."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """One row an instruction. `queue` is -1 for none; `opcode` indexes `EngineProgram.opcodes`."""

    engine: I32
    queue: I32
    opcode: I32
    flags: U8

    def __len__(self) -> int:
        return len(self.engine)


@dataclass(frozen=True, slots=True)
class Accesses:
    """One row a footprint touched, sorted by instruction. `dynamic` is -1, or names the run-time address expression."""

    instruction: I32
    footprint: I32
    buffer: I32
    flags: U8
    dynamic: I32

    def __len__(self) -> int:
        return len(self.instruction)


@dataclass(frozen=True, slots=True)
class Dependencies:
    """One row an edge: `target` starts after `source` completed, `distance` iterations later (0: in the same one)."""

    source: I32
    target: I32
    kind: U8
    distance: I32

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True, slots=True)
class Waits:
    """One row a wait. `producer` is the instruction the document says it waits for, or -1; that alone orders nothing."""

    instruction: I32
    semaphore: I32
    mode: U8
    value: I64
    producer: I32

    def __len__(self) -> int:
        return len(self.instruction)


@dataclass(frozen=True, slots=True)
class Updates:
    """One row an update of a semaphore, sorted by instruction; all counters start at 0."""

    instruction: I32
    semaphore: I32
    mode: U8
    amount: I64
    timing: U8

    def __len__(self) -> int:
        return len(self.instruction)


@dataclass(frozen=True, slots=True)
class Block:
    """Instructions `first <= i < last`, straight-line code. The blocks of a program partition its instructions."""

    name: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Loop:
    """Blocks `first <= b < last` run again and again, at least once; `trips` is the number of times when known."""

    first: int
    last: int
    trips: int | None = None


@dataclass(frozen=True, slots=True)
class PartialRefusal:
    """Something a front end could not express, and the order it spoils: "dependencies", "semaphores" or "both"."""

    refusal: Refusal
    order: str = "both"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction with its names resolved, for reports."""

    index: int
    name: str
    opcode: str
    engine: str
    queue: str | None
    flags: InstructionFlag
    block: str
    site: Site | None


@dataclass(frozen=True, slots=True)
class EngineProgram:
    """A whole program. Every member of a `rendezvous` waits until all of its members have started, then all go on."""

    name: str
    engines: tuple[str, ...]
    queues: tuple[str, ...]
    opcodes: tuple[str, ...]
    semaphores: tuple[str, ...]
    spaces: tuple[Space, ...]
    buffers: tuple[Buffer, ...]
    footprints: Footprints
    names: Sequence[str]
    instructions: Instructions
    accesses: Accesses
    dependencies: Dependencies
    waits: Waits
    updates: Updates
    rendezvous: tuple[tuple[int, ...], ...] = ()
    blocks: tuple[Block, ...] = ()
    loops: tuple[Loop, ...] = ()
    refusals: tuple[PartialRefusal, ...] = ()
    sites: dict[int, Site] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.instructions)

    def instruction(self, index: int) -> Instruction:
        """The instruction at a document position, with its names."""
        rows = self.instructions
        queue = int(rows.queue[index])
        return Instruction(
            index=index,
            name=self.names[index],
            opcode=self.opcodes[rows.opcode[index]],
            engine=self.engines[rows.engine[index]],
            queue=self.queues[queue] if queue >= 0 else None,
            flags=InstructionFlag(int(rows.flags[index])),
            block=self.block_of(index),
            site=self.sites.get(index),
        )

    def block_of(self, index: int) -> str:
        """The name of the block an instruction lies in."""
        low, high = 0, len(self.blocks)
        while low < high:
            middle = (low + high) // 2
            if self.blocks[middle].last <= index:
                low = middle + 1
            else:
                high = middle
        return self.blocks[low].name if low < len(self.blocks) else ""

    def accesses_of(self, index: int) -> range:
        """The rows of `accesses` that belong to an instruction."""
        low = int(np.searchsorted(self.accesses.instruction, index, side="left"))
        return range(low, int(np.searchsorted(self.accesses.instruction, index, side="right")))

    def walk(self) -> Iterator[Instruction]:
        """Every instruction in document order."""
        for index in range(len(self)):
            yield self.instruction(index)
