"""How a front end writes an engine program: one call per fact, in document order, interned as it goes."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from racefree.access import Pattern, Site
from racefree.engines.program import (
    Accesses,
    AccessFlag,
    Block,
    Buffer,
    Dependencies,
    DependencyKind,
    EngineProgram,
    Footprint,
    Footprints,
    InstructionFlag,
    Instructions,
    Loop,
    MemoryKind,
    PartialRefusal,
    Space,
    Timing,
    UpdateMode,
    Updates,
    WaitMode,
    Waits,
)
from racefree.errors import InputError, Refusal


class _Names:
    """Names numbered in first-seen order."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def id(self, name: str) -> int:
        return self.ids.setdefault(name, len(self.ids))

    def tuple(self) -> tuple[str, ...]:
        return tuple(self.ids)


def _append(columns: tuple[array[int], ...], *values: int) -> None:
    try:
        for column, value in zip(columns, values, strict=True):
            column.append(value)
    except OverflowError as error:
        raise InputError(f"a number among {values} does not fit its column: check the counts of the input") from error


def _i32(column: array[int]) -> npt.NDArray[np.int32]:
    return np.array(column, dtype=np.int32)


def _i64(column: array[int]) -> npt.NDArray[np.int64]:
    return np.array(column, dtype=np.int64)


def _u8(column: array[int]) -> npt.NDArray[np.uint8]:
    return np.array(column, dtype=np.uint8)


class ProgramBuilder:
    """Collects the columns of one `EngineProgram`. Ids returned by its methods are indices into the built tables."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._engines, self._queues, self._opcodes, self._semaphores = _Names(), _Names(), _Names(), _Names()
        self._spaces: dict[Space, int] = {}
        self._buffers: dict[str, int] = {}
        self._buffer_rows: list[Buffer] = []
        self._footprints: dict[Footprint, int] = {}
        self._names: list[str] = []
        self._sites: dict[int, Site] = {}
        self._engine, self._queue, self._opcode, self._flags = array("i"), array("i"), array("i"), array("B")
        self._access = (array("i"), array("i"), array("i"), array("B"), array("i"))
        self._dependency = (array("i"), array("i"), array("B"), array("i"))
        self._wait = (array("i"), array("i"), array("B"), array("q"), array("i"))
        self._update = (array("i"), array("i"), array("B"), array("q"), array("B"))
        self._rendezvous: list[tuple[int, ...]] = []
        self._blocks: list[tuple[str, int]] = []
        self._loops: list[Loop] = []
        self._refusals: list[PartialRefusal] = []

    def __len__(self) -> int:
        return len(self._names)

    # ---- tables ------------------------------------------------------------------------------------------------------

    def engine(self, name: str) -> int:
        return self._engines.id(name)

    def queue(self, name: str) -> int:
        return self._queues.id(name)

    def semaphore(self, name: str) -> int:
        return self._semaphores.id(name)

    def space(self, kind: MemoryKind, name: str, *, bank: int = 0) -> int:
        return self._spaces.setdefault(Space(kind, name, bank), len(self._spaces))

    def buffer(self, name: str, space: int, *, initialised: bool = False) -> int:
        """A memory location by name; a second call with the same name returns the first one."""
        if name in self._buffers:
            return self._buffers[name]
        self._buffers[name] = len(self._buffer_rows)
        self._buffer_rows.append(Buffer(name, space, initialised))
        return self._buffers[name]

    def footprint(self, space: int, bytes: Pattern, partitions: Pattern | None = None) -> int:
        return self._footprints.setdefault(Footprint(space, bytes, partitions), len(self._footprints))

    # ---- rows --------------------------------------------------------------------------------------------------------

    def instruction(
        self,
        name: str,
        opcode: str,
        engine: int,
        *,
        queue: int = -1,
        flags: InstructionFlag = InstructionFlag.NONE,
        site: Site | None = None,
    ) -> int:
        """The next instruction in document order. One with a queue is asynchronous; names may repeat."""
        index = len(self._names)
        if queue >= 0:
            flags |= InstructionFlag.ASYNC
        self._names.append(name)
        self._engine.append(engine)
        self._queue.append(queue)
        self._opcode.append(self._opcodes.id(opcode))
        self._flags.append(int(flags))
        if site is not None:
            self._sites[index] = site
        return index

    def access(
        self,
        instruction: int,
        footprint: int,
        buffer: int,
        flags: AccessFlag,
        *,
        dynamic: int = -1,
    ) -> None:
        """Bytes that an instruction reads, or writes when `flags` says so."""
        _append(self._access, instruction, footprint, buffer, int(flags), dynamic)

    def depends(
        self, target: int, source: int, kind: DependencyKind = DependencyKind.FLOW, *, distance: int = 0
    ) -> None:
        """`target` starts after `source` completed; `distance` iterations later for a loop-carried dependency."""
        _append(self._dependency, source, target, int(kind), distance)

    def wait(
        self,
        instruction: int,
        semaphore: int,
        value: int,
        *,
        mode: WaitMode = WaitMode.AT_LEAST,
        producer: int = -1,
    ) -> None:
        """The instruction starts only once the semaphore's counter satisfies the test."""
        _append(self._wait, instruction, semaphore, int(mode), value, producer)

    def update(
        self,
        instruction: int,
        semaphore: int,
        amount: int,
        *,
        mode: UpdateMode = UpdateMode.ADD,
        timing: Timing = Timing.COMPLETED,
    ) -> None:
        """The instruction changes the counter at the given point of its life."""
        _append(self._update, instruction, semaphore, int(mode), amount, int(timing))

    def rendezvous(self, members: Iterable[int]) -> None:
        """Instructions of different engines that wait for each other: none completes before all have started."""
        self._rendezvous.append(tuple(members))

    def barrier(self, name: str, opcode: str, engines: Iterable[int]) -> tuple[int, ...]:
        """One instruction `name-ENGINE` on each engine, all meeting; returns them in the order of `engines`."""
        engine_names = self._engines.tuple()
        members = tuple(self.instruction(f"{name}-{engine_names[e]}", opcode, e) for e in engines)
        self.rendezvous(members)
        return members

    def block(self, name: str) -> int:
        """Starts a block: the instructions added from here on belong to it, up to the next one."""
        self._blocks.append((name, len(self._names)))
        return len(self._blocks) - 1

    def loop(self, first_block: int, last_block: int, *, trips: int | None = None) -> None:
        """Blocks `first_block <= b < last_block` repeat, at least once."""
        self._loops.append(Loop(first_block, last_block, trips))

    def refuse(self, kind: str, reason: str, site: Site | None = None, *, order: str = "both") -> None:
        """Records that part of the input has no meaning here; the program can no longer be `ok` under `order`."""
        self._refusals.append(PartialRefusal(Refusal(kind, reason, site), order))

    # ---- result ------------------------------------------------------------------------------------------------------

    def build(self) -> EngineProgram:
        """The finished program. Raises InputError when indices do not fit together."""
        count = len(self._names)
        if self._blocks and self._blocks[0][1] != 0:
            self._blocks.insert(0, ("", 0))
        starts = self._blocks or [("", 0)]
        ends = [start for _, start in starts[1:]] + [count]
        blocks = tuple(Block(name, start, end) for (name, start), end in zip(starts, ends, strict=True))
        accesses = _sorted_rows(self._access, 0)
        updates = _sorted_rows(self._update, 0)
        waits = _sorted_rows(self._wait, 0)
        source, target, kind, distance = self._dependency
        program = EngineProgram(
            name=self.name,
            engines=self._engines.tuple(),
            queues=self._queues.tuple(),
            opcodes=self._opcodes.tuple(),
            semaphores=self._semaphores.tuple(),
            spaces=tuple(self._spaces),
            buffers=tuple(self._buffer_rows),
            footprints=_footprints(self._footprints),
            names=self._names,
            instructions=Instructions(_i32(self._engine), _i32(self._queue), _i32(self._opcode), _u8(self._flags)),
            accesses=Accesses(
                _narrow(accesses[0]),
                _narrow(accesses[1]),
                _narrow(accesses[2]),
                _byte(accesses[3]),
                _narrow(accesses[4]),
            ),
            dependencies=Dependencies(_i32(source), _i32(target), _u8(kind), _i32(distance)),
            waits=Waits(_narrow(waits[0]), _narrow(waits[1]), _byte(waits[2]), waits[3], _narrow(waits[4])),
            updates=Updates(_narrow(updates[0]), _narrow(updates[1]), _byte(updates[2]), updates[3], _byte(updates[4])),
            rendezvous=tuple(self._rendezvous),
            blocks=blocks,
            loops=tuple(self._loops),
            refusals=tuple(self._refusals),
            sites=self._sites,
        )
        validate(program)
        return program


def _footprints(footprints: Iterable[Footprint]) -> Footprints:
    try:
        return Footprints.of(list(footprints))
    except OverflowError as error:
        raise InputError("an address does not fit 64 bits: check the offsets and steps of the input") from error


def _sorted_rows(columns: tuple[array[int], ...], key: int) -> list[npt.NDArray[np.int64]]:
    wide = [_i64(column) for column in columns]
    order = np.argsort(wide[key], kind="stable")
    return [column[order] for column in wide]


def _narrow(column: npt.NDArray[np.int64]) -> npt.NDArray[np.int32]:
    return column.astype(np.int32)


def _byte(column: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    return column.astype(np.uint8)


def validate(program: EngineProgram) -> None:
    """Checks that all indices of a program fit together; raises InputError naming the first column that does not."""
    count = len(program)
    limits: list[tuple[str, npt.NDArray[np.int32], int, int]] = [
        ("instruction engine", program.instructions.engine, 0, len(program.engines)),
        ("instruction queue", program.instructions.queue, -1, len(program.queues)),
        ("access instruction", program.accesses.instruction, 0, count),
        ("access footprint", program.accesses.footprint, 0, len(program.footprints)),
        ("access buffer", program.accesses.buffer, 0, len(program.buffers)),
        ("dependency source", program.dependencies.source, 0, count),
        ("dependency target", program.dependencies.target, 0, count),
        ("wait instruction", program.waits.instruction, 0, count),
        ("wait semaphore", program.waits.semaphore, 0, len(program.semaphores)),
        ("update instruction", program.updates.instruction, 0, count),
        ("update semaphore", program.updates.semaphore, 0, len(program.semaphores)),
    ]
    for what, column, low, high in limits:
        if len(column) and (int(column.min()) < low or int(column.max()) >= high):
            raise InputError(
                f"{what} out of range [{low}, {high}) in program {program.name!r}: fix the front end's input"
            )
    asynchronous = (program.instructions.flags & np.uint8(InstructionFlag.ASYNC)) != 0
    running = program.updates.instruction[program.updates.timing == Timing.RUNNING]
    if not asynchronous[running].all():
        name = program.names[int(running[~asynchronous[running]][0])]
        raise InputError(f"instruction {name!r} adds counts while it runs but is not asynchronous: give it its queue")
    for loop in program.loops:
        if not 0 <= loop.first < loop.last <= len(program.blocks):
            raise InputError(f"loop over blocks [{loop.first}, {loop.last}) of {len(program.blocks)}: no such blocks")
    for members in program.rendezvous:
        engines = [int(program.instructions.engine[m]) for m in members]
        if len(set(engines)) != len(engines):
            raise InputError(f"rendezvous {program.names[members[0]]!r} lists an engine twice: one instruction each")
