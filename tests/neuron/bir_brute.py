"""Exact hazards of a straight-line BIR document, from the document itself: byte sets, closures, and executions.

Shares no code with the reader, the lowering or the engine. One block, no control flow. Each item is a piece of work: an
instruction, or a descriptor block right after its trigger.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

Json = dict[str, Any]
Byte = tuple[str, int, int]

SIZES = {"float32": 4, "float32r": 4, "bfloat16": 2, "int16": 2, "uint8": 1, "int32": 4, "float16": 2}
DMA = {"DMACopy", "Load", "Save", "IndirectLoad", "IndirectSave", "IndirectSaveAccumulate"}


@dataclass
class Item:
    """`exact` is False when some operand's address is known at run time only; `known` when none is hopeless."""

    name: str
    engine: str
    asynchronous: bool
    source: Json
    touches: bool
    reads: set[Byte] = field(default_factory=set)
    writes: set[Byte] = field(default_factory=set)
    doubtful_reads: set[Byte] = field(default_factory=set)
    doubtful_writes: set[Byte] = field(default_factory=set)
    waits: list[tuple[int, int]] = field(default_factory=list)
    updates: list[tuple[int, int]] = field(default_factory=list)
    dependencies: list[str] = field(default_factory=list)
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """`refused`: no claim can be made (a cycle, a deadlock, a name with several meanings, a register address on chip)."""

    races: frozenset[tuple[int, int]]
    possible: frozenset[tuple[int, int]]
    refused: bool


class Document:
    def __init__(self, document: Json) -> None:
        (function,) = document["functions"]
        (block,) = function["blocks"]
        self.locations = {
            location["name"]: (location, allocation)
            for allocation in function["allocations"]
            for location in allocation["memorylocations"]
        }
        self.blocks = {
            one["name"]: one for queue in document["queues"] for part in queue["blocks"] for one in part["instructions"]
        }
        self.hopeless = False
        self.items: list[Item] = []
        for instruction in block["instructions"]:
            self._add(instruction)

    def _add(self, instruction: Json) -> None:
        started = instruction.get("dma_blocks", [])
        asynchronous = bool(instruction.get("queue") or instruction["opcode"] in DMA) and not started
        item = self._item(instruction, instruction["engine"], asynchronous)
        item.names = (instruction["name"], *started)
        self.items.append(item)
        for name in started:
            self.items.append(self._item(self.blocks[name], instruction["engine"], True))

    def _item(self, source: Json, engine: str, asynchronous: bool) -> Item:
        sync = source.get("sync_info") or {}
        owners = [source, *(one for part in source.get("blocks", []) for one in part["instructions"])]
        item = Item(source["name"], engine, asynchronous, source, any(one["ins"] or one["outs"] for one in owners))
        item.waits = [(wait["id"], wait["wait_value"]) for wait in sync.get("on_wait", [])]
        item.updates = [(update["id"], update["update_value"]) for update in sync.get("on_update", [])]
        item.dependencies = [entry[0] for entry in source.get("dependencies", [])]
        item.names = (item.name,)
        for owner in owners:
            for operand in owner["ins"]:
                self._touch(operand, item.reads, item.doubtful_reads)
            for operand in owner["outs"]:
                self._touch(operand, item.writes, item.doubtful_writes)
        return item

    def _touch(self, operand: Json, certain: set[Byte], doubtful: set[Byte]) -> None:
        if operand["kind"] == "physical_ap":
            certain |= self._bytes(operand)
        elif operand["kind"] == "register_ap":
            for location, allocation in self.locations.values():
                if allocation["name"] == operand["memsetref"]:
                    if location["type"] != "DRAM":
                        self.hopeless = True
                    else:
                        size = 1
                        for dim in location["dims"]:
                            size *= dim
                        space = _dram_space(location, allocation)
                        doubtful |= {(space, 0, location["addr"] + byte) for byte in range(size)}

    def _bytes(self, operand: Json) -> set[Byte]:
        location, allocation = self.locations[operand["memref"]]
        size = SIZES[operand["dtype"]]
        found = set()
        pitch = location["dims"][1] // size
        for index in product(*[range(num) for _, num in operand["ap"]]):
            element = operand["offset"] + sum(k * step for k, (step, _) in zip(index, operand["ap"], strict=True))
            if location["type"] == "DRAM":
                where = _dram_space(location, allocation), 0, location["addr"] + element * size
            else:
                row, column = divmod(element, pitch)
                start = location["addr"] + column * size
                if location["type"] == "PSUM":
                    start += location["bank"] * 2048
                where = location["type"], location["base"] + row, start
            found |= {(where[0], where[1], where[2] + byte) for byte in range(size)}
        return found

    # ---- answers -----------------------------------------------------------------------------------------------------

    def by_dependencies(self) -> Answer:
        after: list[set[int]] = [set() for _ in range(2 * len(self.items))]
        last: dict[str, int] = {}
        refused = self.hopeless
        for at, item in enumerate(self.items):
            after[2 * at].add(2 * at + 1)
            if item.engine in last:
                previous = last[item.engine]
                after[2 * previous + (0 if self.items[previous].asynchronous else 1)].add(2 * at)
            last[item.engine] = at
            for name in item.dependencies:
                sources = self._named(name, at)
                if len(sources) != 1:
                    refused = True
                    continue
                (source,) = sources
                for offset in range(len(self.items[source].names)):
                    after[2 * (source + offset) + 1].add(2 * at)
        reach = _closure(after)
        if any(node in reach[node] for node in range(len(after))):
            return Answer(frozenset(), frozenset(), True)
        return self._hazards(lambda a, b: 2 * b in reach[2 * a + 1], refused)

    def _named(self, name: str, at: int) -> list[int]:
        """Trigger names stand for their descriptor blocks too, so items that only start others are listed by name."""
        named = [index for index, item in enumerate(self.items) if item.name == name]
        return [index for index in named if index < at] or [index for index in named if index > at]

    def by_semaphores(self) -> Answer:
        if self._started(None) != set(range(len(self.items))):
            return Answer(frozenset(), frozenset(), True)
        without: dict[int, set[int]] = {}

        def before(a: int, b: int) -> bool:
            if a not in without:
                without[a] = self._started(a)
            return b not in without[a]

        return self._hazards(before, self.hopeless)

    def _started(self, held: int | None) -> set[int]:
        """What can start although the work `held` never completes: its counts but the last may still arrive."""
        lines: dict[str, list[int]] = {}
        for at, item in enumerate(self.items):
            lines.setdefault(item.engine, []).append(at)
        place = dict.fromkeys(lines, 0)
        counters: dict[int, int] = {}
        started: set[int] = set()
        moved = True
        while moved:
            moved = False
            for engine, line in lines.items():
                while place[engine] < len(line):
                    at = line[place[engine]]
                    item = self.items[at]
                    if any(counters.get(semaphore, 0) < value for semaphore, value in item.waits):
                        break
                    started.add(at)
                    moved = True
                    for semaphore, amount in item.updates:
                        arrives = amount if at != held else (max(0, amount - 1) if item.asynchronous else 0)
                        counters[semaphore] = counters.get(semaphore, 0) + arrives
                    place[engine] += 1 if at != held or item.asynchronous else len(line)
        return started

    def _hazards(self, before: Any, refused: bool) -> Answer:
        races, possible = set(), set()
        for j, later in enumerate(self.items):
            for i, earlier in enumerate(self.items[:j]):
                certain = _conflict(earlier.reads, earlier.writes, later.reads, later.writes)
                doubt = not certain and _conflict(
                    earlier.reads | earlier.doubtful_reads,
                    earlier.writes | earlier.doubtful_writes,
                    later.reads | later.doubtful_reads,
                    later.writes | later.doubtful_writes,
                )
                if (certain or doubt) and not before(i, j) and not before(j, i):
                    (races if certain else possible).add((i, j))
        return Answer(frozenset(races), frozenset(possible), refused)


def _dram_space(location: Json, allocation: Json) -> str:
    return "arena" if allocation["kind"] == "Internal" else str(location["name"])


def _conflict(reads: set[Byte], writes: set[Byte], other_reads: set[Byte], other_writes: set[Byte]) -> bool:
    return not (writes.isdisjoint(other_writes) and writes.isdisjoint(other_reads) and reads.isdisjoint(other_writes))


def _closure(after: list[set[int]]) -> list[set[int]]:
    reach = []
    for node in range(len(after)):
        seen: set[int] = set()
        stack = [node]
        while stack:
            for following in after[stack.pop()]:
                if following not in seen:
                    seen.add(following)
                    stack.append(following)
        reach.append(seen)
    return reach
