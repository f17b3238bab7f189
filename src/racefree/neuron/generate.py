"""Makes realistic synchronised BIR programs: tiles that reuse addresses, five engines, transfers, minimal waits.

Dependencies are derived from exact footprints and reduced: most edges that others imply are left out. Every edge that engine
order alone does not give becomes a wait. So each program is race-free by dependencies and by semaphores, and most of its
edges are needed. A document is plain JSON-ready data; the same options give the same document.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from racefree.geometry import overlaps
from racefree.neuron.document import DTYPE_BYTES, Allocation, PhysicalAp
from racefree.neuron.footprint import Footprint, Place, footprints
from racefree.neuron.operands import read_allocation, read_operand

Json = dict[str, Any]

ARCHITECTURES = ("sunda", "gen3", "core_v4")
DMA_INCREMENT = 16
POOL_OF_SEMAPHORES = 16
MOST_WAITS = 2

_ENGINE_SEMAPHORE = {"Pool": 1, "Activation": 2, "PE": 3, "DVE": 5, "SP": 6}
_DMA_ENGINES = ("SP", "Activation", "Pool")
_ELEMENT_TYPES = ("float32", "bfloat16", "uint8", "float32r", "int16")


@dataclass(frozen=True, slots=True)
class Options:
    """The shape of a generated program. `partitions` and `row_bytes` bound the tiles; small ones suit brute force.

    `blocks` straight-line blocks, each ended by barriers and a semaphore reset; with `loop` the first one repeats.
    `redundant` is the share of implied edges that stay, as when no reduction pass ran.
    """

    seed: int = 0
    instructions: int = 40
    tiles: int = 6
    partitions: int = 128
    row_bytes: int = 2048
    blocks: int = 1
    loop: bool = False
    triggers: bool = True
    redundant: float = 0.1


@dataclass(slots=True)
class _Tile:
    name: str
    type: str
    partitions: int
    row_bytes: int
    entry: Json


@dataclass(slots=True)
class _Work:
    """One instruction before synchronisation. `known` are the works complete when it starts, as a bit set."""

    name: str
    opcode: str
    engine: str
    ins: list[Json]
    outs: list[Json]
    queue: str = ""
    extra: Json = field(default_factory=dict)
    trigger: bool = False
    reads: tuple[Footprint, ...] = ()
    writes: tuple[Footprint, ...] = ()
    known: int = 0
    edges: dict[int, str] = field(default_factory=dict)
    updates: list[tuple[int, int]] = field(default_factory=list)
    count: int = 0

    @property
    def asynchronous(self) -> bool:
        return bool(self.queue)


def generate(options: Options | None = None) -> Json:
    """A document as its JSON reader would return it. Deterministic in the options."""
    return _Maker(options or Options()).document()


class _Maker:
    def __init__(self, options: Options) -> None:
        self.options = options
        self.rng = random.Random(options.seed)
        self.tiles: list[_Tile] = []
        self.places: dict[str, Place] = {}
        self.footprints: dict[str, tuple[Footprint, ...]] = {}
        self.meetings: dict[tuple[Footprint, Footprint], bool] = {}
        self.queues: dict[str, list[Json]] = {}
        self.number = 0

    def name(self) -> str:
        self.number += 1
        return f"I-{self.number - 1}"

    # ---- memory ------------------------------------------------------------------------------------------------------

    def lay_out(self) -> list[Json]:
        """Tiles whose addresses overlap now and then, and one DRAM tensor for input and output each."""
        rng, options = self.rng, self.options
        allocations = []
        for index in range(options.tiles):
            on_psum = index % 3 == 2
            partitions = max(1, options.partitions // rng.choice((1, 1, 2, 4)))
            row = max(16, options.row_bytes // rng.choice((1, 1, 2)))
            if on_psum:
                row = min(row, 2048)
            span = max(row, options.row_bytes)
            addr = 0 if on_psum else rng.randrange(0, 2 * options.tiles) * max(32, span // 2 // 32 * 32)
            quadrants = [base for base in (0, 32, 64, 96) if base + partitions <= 128]
            entry = {
                "name": f"t{index}",
                "type": "PSUM" if on_psum else "SB",
                "addr": addr,
                "dims": [partitions, row],
                "bank": rng.randrange(2) if on_psum else 0,
                "base": rng.choice(quadrants[:2]),
                "allocated": True,
                "pinned": False,
                "tensor_id": 0,
            }
            self.tiles.append(_Tile(f"t{index}", str(entry["type"]), partitions, row, entry))
            tensor = "NeuronPSUMTensor" if on_psum else "NeuronSBTensor"
            allocations.append(_allocation(entry, "Internal", tensor))
        size = options.partitions * options.row_bytes
        for index, (name, kind) in enumerate(
            (("x", "ExternalInput"), ("y", "ExternalOutput"), ("scratch", "Internal"))
        ):
            entry = {
                "name": name,
                "type": "DRAM",
                "addr": 4096 * index,
                "dims": [options.partitions, options.row_bytes],
                "bank": 0,
                "base": 0,
                "allocated": True,
                "pinned": False,
                "tensor_id": 0,
            }
            self.tiles.append(_Tile(name, "DRAM", 1, size, entry))
            allocations.append(_allocation(entry, kind, "Tensor"))
        for allocation in allocations:
            record: Allocation = read_allocation(allocation)
            self.places.update({one.name: Place(one, record) for one in record.locations})
        return allocations

    def pick(self, *types: str, names: Sequence[str] = ()) -> _Tile:
        found = [tile for tile in self.tiles if tile.type in types and (not names or tile.name in names)]
        return self.rng.choice(found)

    def operand(self, tile: _Tile, *, read: bool) -> Json:
        """A random part of a tile: rows, columns with a stride, a broadcast read, another element type."""
        rng = self.rng
        dtype = rng.choice([one for one in _ELEMENT_TYPES if tile.row_bytes % DTYPE_BYTES[one] == 0])
        if tile.type == "DRAM":
            return self._linear(tile, dtype)
        pitch = tile.row_bytes // DTYPE_BYTES[dtype]
        first_row = rng.choice((0, 0, tile.partitions // 2))
        row_step = rng.choice((1, 1, 1, 2))
        rows = max(1, rng.randint(1, tile.partitions - first_row) // row_step)
        first_column = rng.choice((0, 0, pitch // 2, pitch // 4))
        space = pitch - first_column
        shape = rng.random()
        if shape < 0.5:
            inner = [[1, max(1, rng.choice((space, space // 2, space // 4)))]]
        elif shape < 0.75:
            step = rng.choice((2, 3, 4))
            inner = [[step, max(1, (space - 1) // step + 1)]]
        else:
            step = max(2, space // 4)
            inner = [[step, max(1, (space - step) // step + 1)], [1, max(1, step // 2)]]
        if read and rng.random() < 0.15:
            inner = [[0, 2], *inner]
        return _physical(tile.name, dtype, [[pitch * row_step, rows], *inner], first_row * pitch + first_column)

    def _linear(self, tile: _Tile, dtype: str) -> Json:
        rng = self.rng
        elements = tile.row_bytes // DTYPE_BYTES[dtype]
        part = max(1, elements // rng.choice((1, 2, 4, 8)))
        offset = rng.randrange(0, elements - part + 1)
        if part >= 8 and rng.random() < 0.3:
            return _physical(tile.name, dtype, [[part // 4, 4], [1, max(1, part // 8)]], offset)
        return _physical(tile.name, dtype, [[1, part]], offset)

    # ---- instructions ------------------------------------------------------------------------------------------------

    def work(self) -> _Work:
        rng = self.rng
        kind = rng.choices(("load", "matmul", "evacuate", "elementwise", "store"), (3, 2, 2, 4, 2))[0]
        match kind:
            case "load":
                source, target = self.pick("DRAM", names=("x", "scratch")), self.pick("SB")
                return self.transfer(self.operand(source, read=True), self.operand(target, read=False))
            case "store":
                source, target = self.pick("SB"), self.pick("DRAM", names=("y", "scratch"))
                return self.transfer(self.operand(source, read=True), self.operand(target, read=False))
            case "matmul":
                ins = [self.operand(self.pick("SB"), read=True) for _ in range(2)]
                return _Work(
                    self.name(), "Matmult", "PE", ins, [self.operand(self.pick("PSUM"), read=False)],
                    extra={"accumulation_flag": rng.randrange(4)},
                )  # fmt: skip
            case "evacuate":
                opcode, engine = rng.choice((("TensorCopy", "DVE"), ("Activation", "Activation")))
                ins = [self.operand(self.pick("PSUM"), read=True)]
                return _Work(self.name(), opcode, engine, ins, [self.operand(self.pick("SB"), read=False)])
            case _:
                opcode, inputs = rng.choice((("TensorTensor", 2), ("TensorScalar", 1), ("Memset", 0)))
                ins = [self.operand(self.pick("SB"), read=True) for _ in range(inputs)]
                if opcode == "TensorScalar":
                    ins.append({"kind": "imm_value", "dtype": "float32", "value": 2.0})
                engine = rng.choice(("DVE", "Pool"))
                return _Work(self.name(), opcode, engine, ins, [self.operand(self.pick("SB"), read=False)])

    def transfer(self, source: Json, target: Json) -> _Work:
        engine = self.rng.choice(_DMA_ENGINES)
        trigger = self.options.triggers and engine == "Pool"
        queue = f"q{engine}Dynamic" if trigger else f"q{engine}DynamicHW"
        self.queues.setdefault(queue, [])
        extra: Json = {} if trigger else {"mode": "Copy", "dge_type": "HWDGE"}
        opcode = "DMATrigger" if trigger else "DMACopy"
        return _Work(self.name(), opcode, engine, [source], [target], queue, extra, trigger)

    def touched(self, operands: Sequence[Json]) -> tuple[Footprint, ...]:
        pieces: list[Footprint] = []
        for operand in operands:
            record = read_operand(operand)
            if isinstance(record, PhysicalAp):
                pieces += footprints(record, self.places[record.memref])
        return tuple(pieces)

    # ---- order -------------------------------------------------------------------------------------------------------

    def conflict(self, earlier: _Work, later: _Work) -> str:
        """The kind of the strongest conflict, empty when there is none."""
        for kind, ours, theirs in (
            ("Flow", earlier.writes, later.reads),
            ("Output", earlier.writes, later.writes),
            ("Anti", earlier.reads, later.writes),
        ):
            if any(self.meet(one, other) for one in ours for other in theirs):
                return kind
        return ""

    def meet(self, one: Footprint, other: Footprint) -> bool:
        if one.space != other.space:
            return False
        known = self.meetings.get((one, other))
        if known is None:
            known = bool(overlaps(one.partitions, other.partitions)) and overlaps(one.bytes, other.bytes) is not False
            self.meetings[one, other] = known
        return known

    def link(self, works: list[_Work]) -> None:
        """Edges to the conflicting works that are not known to be complete, latest first."""
        last_on: dict[str, int] = {}
        slots: dict[tuple[str, int], int] = {}
        used: dict[str, int] = {}
        for at, work in enumerate(works):
            work.reads, work.writes = self.touched(work.ins), self.touched(work.outs)
            previous = last_on.get(work.engine)
            if previous is not None:
                work.known |= works[previous].known
                if not works[previous].asynchronous:
                    work.known |= 1 << previous
            for earlier in range(at - 1, -1, -1):
                implied = bool(work.known >> earlier & 1)
                if implied and self.rng.random() >= self.options.redundant:
                    continue
                if kind := self.conflict(works[earlier], work):
                    self.edge(works, at, earlier, kind)
            if work.asynchronous:
                slot = (work.queue, used.get(work.queue, 0) % POOL_OF_SEMAPHORES)
                used[work.queue] = used.get(work.queue, 0) + 1
                before = slots.get(slot)
                if before is not None and not work.known >> before & 1:
                    self.edge(works, at, before, "Ordered")
                slots[slot] = at
            last_on[work.engine] = at

    @staticmethod
    def edge(works: list[_Work], at: int, earlier: int, kind: str) -> None:
        works[at].edges[earlier] = kind
        works[at].known |= works[earlier].known | 1 << earlier

    # ---- document ----------------------------------------------------------------------------------------------------

    def synchronise(self, works: list[_Work]) -> list[Json]:
        """Waits and updates for the edges; waits that do not fit become instructions of their own."""
        order = list(self.queues)
        waited = {
            earlier
            for work in works
            for earlier in work.edges
            if works[earlier].asynchronous or works[earlier].engine != work.engine
        }
        totals: dict[int, int] = {}
        used: dict[str, int] = {}
        for at, work in enumerate(works):
            if work.asynchronous:
                slot = used.get(work.queue, 0) % POOL_OF_SEMAPHORES
                used[work.queue] = used.get(work.queue, 0) + 1
                semaphore, amount = 16 + POOL_OF_SEMAPHORES * order.index(work.queue) + slot, DMA_INCREMENT
            elif at in waited:
                semaphore, amount = _ENGINE_SEMAPHORE[work.engine], 1
            else:
                continue
            totals[semaphore] = totals.get(semaphore, 0) + amount
            work.updates, work.count = [(semaphore, amount)], totals[semaphore]
        written: list[Json] = []
        for work in works:
            written.extend(self.written(works, work))
        return written

    def written(self, works: list[_Work], work: _Work) -> Iterator[Json]:
        strongest: dict[int, tuple[int, str]] = {}
        for earlier in sorted(work.edges):
            source = works[earlier]
            if source.asynchronous or source.engine != work.engine:
                semaphore = source.updates[0][0]
                strongest[semaphore] = max(strongest.get(semaphore, (0, "")), (source.count, _signal(source)))
        waits: list[Json] = [
            {"from": source, "id": semaphore, "wait_value": count}
            for semaphore, (count, source) in sorted(strongest.items())
        ]
        while len(waits) > MOST_WAITS:
            spilled, waits = waits[:MOST_WAITS], waits[MOST_WAITS:]
            yield _instruction(self.name(), "EventSemaphore", work.engine, sync={"on_wait": spilled})
        dependencies = [[_signal(works[earlier]), work.edges[earlier]] for earlier in sorted(work.edges)]
        updates = [{"id": semaphore, "update_value": amount} for semaphore, amount in work.updates]
        if work.trigger:
            block = _signal(work)
            yield _instruction(
                work.name, work.opcode, work.engine, sync={"on_wait": waits}, dependencies=dependencies,
                queue=work.queue, dma_blocks=[block], **work.extra,
            )  # fmt: skip
            self.queues[work.queue].append(_dma_block(block, work, updates))
            return
        sync = {"on_wait": waits, "on_update": updates}
        extra = work.extra | ({"queue": work.queue} if work.queue else {})
        yield _instruction(
            work.name, work.opcode, work.engine, work.ins, work.outs, sync=sync, dependencies=dependencies, **extra
        )

    def fence(self, works: list[_Work], block: str) -> Iterator[Json]:
        """The end of a block: every transfer awaited, then barriers around a reset of all its semaphores."""
        last = {work.updates[0][0]: work for work in works if work.asynchronous}
        for semaphore, work in sorted(last.items()):
            wait = {"from": _signal(work), "id": semaphore, "wait_value": work.count}
            yield _instruction(
                self.name(),
                "EventSemaphore",
                "Pool",
                sync={"on_wait": [wait]},
                dependencies=[[_signal(work), "Ordered"]],
            )
        group = sorted({semaphore for work in works for semaphore, _ in work.updates})
        yield _instruction(f"{block}-barrier0", "AllEngineBarrier", "ALL")
        if group:
            yield _instruction(f"{block}-reset", "GroupResetSemaphores", "ALL", sema_group=group)
        yield _instruction(f"{block}-barrier1", "AllEngineBarrier", "ALL")
        yield _instruction(f"{block}-drain", "Drain", "ALL")

    def document(self) -> Json:
        rng, options = self.rng, self.options
        allocations = self.lay_out()
        names = [f"Block{index + 1}" for index in range(options.blocks)]
        if options.loop:
            names[0] = "Block1_LoopBody_1"
            names.append("Block1_LoopExit_1")
        blocks = []
        for index, name in enumerate(names):
            share = max(1, options.instructions // len(names))
            works = [self.work() for _ in range(share)]
            self.link(works)
            instructions = self.synchronise(works)
            if len(names) > 1:
                instructions += self.fence(works, name)
            if options.loop and index == 0:
                for engine in ("Pool", "Activation", "PE", "DVE", "SP"):
                    branch: Json = {"comp_op": "lt", "on_true": name, "on_false": names[1]}
                    instructions.append(_instruction(f"{name}-branch", "CompareAndBranch", engine, **branch))
            blocks.append({"name": name, "instructions": instructions})
        return {
            "arch": rng.choice(ARCHITECTURES),
            "attributes": {"neuron_core_id": 0},
            "functions": [{"allocations": allocations, "attributes": [], "blocks": blocks, "name": "sg0000"}],
            "queues": [
                {"name": name, "blocks": [{"instructions": rows}] if rows else []} for name, rows in self.queues.items()
            ],
            "version": 2,
        }


def _allocation(entry: Json, kind: str, tensor_class: str) -> Json:
    return {
        "name": f"{entry['name']}_set",
        "kind": kind,
        "tensor_class": tensor_class,
        "addr_space": "Local",
        "dtype": "float32",
        "partition_dim": 0,
        "tensor_shape": [int(entry["dims"][0]), int(entry["dims"][1]) // 4],
        "memorylocations": [entry],
    }


def _physical(memref: str, dtype: str, pairs: list[list[int]], offset: int) -> Json:
    return {
        "kind": "physical_ap",
        "memref": memref,
        "memsetref": f"{memref}_set",
        "dtype": dtype,
        "ap": pairs,
        "offset": offset,
    }


def _signal(work: _Work) -> str:
    """The name others wait for: the descriptor block of a trigger, the instruction itself otherwise."""
    return f"{work.name}-block" if work.trigger else work.name


def _instruction(
    name: str,
    opcode: str,
    engine: str,
    ins: Sequence[Json] = (),
    outs: Sequence[Json] = (),
    *,
    sync: dict[str, list[Json]] | None = None,
    dependencies: Sequence[list[str]] = (),
    **extra: Any,
) -> Json:
    written: Json = {"name": name, "opcode": opcode, "engine": engine, "ins": list(ins), "outs": list(outs)}
    kept = {key: entries for key, entries in (sync or {}).items() if entries}
    if kept:
        written["sync_info"] = kept
    if dependencies:
        written["dependencies"] = list(dependencies)
    return written | extra


def _dma_block(name: str, work: _Work, updates: list[Json]) -> Json:
    descriptor = {
        "name": f"{name}-0",
        "opcode": "DMADescriptorCopy",
        "engine": "DMA",
        "ins": work.ins,
        "outs": work.outs,
    }
    return {
        "name": name,
        "opcode": "DMABlock",
        "engine": "DMA",
        "ins": [],
        "outs": [],
        "sync_info": {"on_update": updates},
        "dma_trigger": work.name,
        "blocks": [{"name": f"{name}-body", "instructions": [descriptor]}],
    }
