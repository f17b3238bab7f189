"""Damages a synchronised BIR document in the fourteen ways compilers and people get synchronisation wrong.

Whether a damaged program races is never assumed: many damages are harmless, because another chain of waits still orders
what the damaged one did. A mutation that does not apply to a document returns None.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from racefree.neuron.document import DATA_PATH_ENGINES, DTYPE_BYTES

Json = dict[str, Any]
Mutation = Callable[["Editor"], str | None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """A damaged document and what was done to it."""

    mutation: str
    change: str
    document: Json


class Editor:
    """A private copy of a document, with its parts within reach."""

    def __init__(self, document: Json, rng: random.Random) -> None:
        self.document: Json = copy.deepcopy(document)
        self.rng = rng

    def blocks(self) -> Iterator[list[Json]]:
        for function in self.document["functions"]:
            for block in function["blocks"]:
                yield block["instructions"]

    def instructions(self) -> list[Json]:
        return [one for block in self.blocks() for one in block]

    def descriptor_blocks(self) -> list[Json]:
        return [one for queue in self.document["queues"] for part in queue["blocks"] for one in part["instructions"]]

    def locations(self) -> list[Json]:
        return [
            location
            for function in self.document["functions"]
            for allocation in function["allocations"]
            for location in allocation["memorylocations"]
        ]

    def waits(self) -> list[tuple[Json, Json]]:
        """(instruction, wait) pairs."""
        return [(one, wait) for one in self.instructions() for wait in one.get("sync_info", {}).get("on_wait", [])]

    def operands(self) -> list[tuple[Json, Json]]:
        """(owner, physical operand) pairs, those of descriptors included."""
        found = []
        for owner in self.instructions():
            found += [(owner, operand) for key in ("ins", "outs") for operand in owner[key]]
        for block in self.descriptor_blocks():
            for part in block["blocks"]:
                for descriptor in part["instructions"]:
                    found += [(block, operand) for key in ("ins", "outs") for operand in descriptor[key]]
        return [(owner, operand) for owner, operand in found if operand["kind"] == "physical_ap"]

    def location(self, operand: Json) -> Json:
        return next(one for one in self.locations() if one["name"] == operand["memref"])


def drop_dependency(editor: Editor) -> str | None:
    holders = [one for one in editor.instructions() if one.get("dependencies")]
    if not holders:
        return None
    holder = editor.rng.choice(holders)
    at = editor.rng.randrange(len(holder["dependencies"]))
    source, kind = holder["dependencies"].pop(at)
    return f"{holder['name']} no longer depends on {source} ({kind})"


def drop_wait(editor: Editor) -> str | None:
    waits = editor.waits()
    if not waits:
        return None
    holder, wait = editor.rng.choice(waits)
    holder["sync_info"]["on_wait"].remove(wait)
    return f"{holder['name']} no longer waits for {wait['wait_value']} on semaphore {wait['id']}"


def lower_wait(editor: Editor) -> str | None:
    waits = editor.waits()
    if not waits:
        return None
    holder, wait = editor.rng.choice(waits)
    less = editor.rng.choice((1, 16)) if wait["wait_value"] > 16 else 1
    wait["wait_value"] -= less
    return f"{holder['name']} waits for {less} less on semaphore {wait['id']}"


def rename_producer(editor: Editor) -> str | None:
    waits = editor.waits()
    others = [one for one, _ in waits]
    if len(waits) < 2:
        return None
    holder, wait = editor.rng.choice(waits)
    target = editor.rng.choice(others)["name"]
    wait["from"] = target
    return f"{holder['name']} names {target} as what it waits for"


def drop_update(editor: Editor) -> str | None:
    holders = [
        one
        for one in (*editor.instructions(), *editor.descriptor_blocks())
        if one.get("sync_info", {}).get("on_update")
    ]
    if not holders:
        return None
    holder = editor.rng.choice(holders)
    update = holder["sync_info"]["on_update"].pop()
    return f"{holder['name']} no longer updates semaphore {update['id']}"


def swap_neighbours(editor: Editor) -> str | None:
    choices = []
    for block in editor.blocks():
        for first in range(len(block)):
            second = next((at for at in range(first + 1, len(block)) if _same_engine(block[first], block[at])), None)
            if second is not None:
                choices.append((block, first, second))
    if not choices:
        return None
    block, first, second = editor.rng.choice(choices)
    block[first], block[second] = block[second], block[first]
    return f"{block[second]['name']} and {block[first]['name']} change places"


def _same_engine(one: Json, other: Json) -> bool:
    return bool(one["engine"] == other["engine"] != "ALL") and "CompareAndBranch" not in (
        one["opcode"],
        other["opcode"],
    )


def move_engine(editor: Editor) -> str | None:
    movable = [
        one
        for one in editor.instructions()
        if one["engine"] in DATA_PATH_ENGINES and one["opcode"] != "CompareAndBranch"
    ]
    if not movable:
        return None
    chosen = editor.rng.choice(movable)
    before = chosen["engine"]
    chosen["engine"] = editor.rng.choice([engine for engine in DATA_PATH_ENGINES if engine != before])
    return f"{chosen['name']} moves from {before} to {chosen['engine']}"


def shift_address(editor: Editor) -> str | None:
    """By an element, a row, a quadrant or a bank, of one operand or of a whole location."""
    operands = editor.operands()
    if not operands:
        return None
    owner, operand = editor.rng.choice(operands)
    location = editor.location(operand)
    size = DTYPE_BYTES[operand["dtype"]]
    what = editor.rng.choice(("element", "row", "addr", "base", "bank"))
    if what == "element":
        operand["offset"] += 1
        return f"{owner['name']}: an operand on {operand['memref']} starts one element later"
    if location["type"] == "DRAM" or what == "addr":
        location["addr"] += size
        return f"location {location['name']} starts {size} bytes later"
    if what == "row":
        operand["offset"] += location["dims"][1] // size
        return f"{owner['name']}: an operand on {operand['memref']} starts one row later"
    if what == "base":
        location["base"] = (location["base"] + 32) % 64
        return f"location {location['name']} starts at partition {location['base']}"
    if location["type"] != "PSUM":
        return None
    location["bank"] = (location["bank"] + 1) % 8
    return f"location {location['name']} moves to bank {location['bank']}"


def interleave(editor: Editor) -> str | None:
    """Two operands on one tile become its even and its odd columns: they touch no common byte."""
    by_tile: dict[str, list[Json]] = {}
    for _, operand in editor.operands():
        if editor.location(operand)["type"] == "SB":
            by_tile.setdefault(operand["memref"], []).append(operand)
    shared = sorted(name for name, operands in by_tile.items() if len(operands) > 1)
    if not shared:
        return None
    name = editor.rng.choice(shared)
    first, second = editor.rng.sample(by_tile[name], 2)
    location = editor.location(first)
    pitch = location["dims"][1] // 4
    if pitch < 2:
        return None
    for column, operand in enumerate((first, second)):
        operand |= {
            "dtype": "float32",
            "ap": [[pitch, location["dims"][0]], [2, pitch // 2]],
            "offset": column,
        }
    return f"two operands on {name} become its even and its odd columns"


def weaken_fence(editor: Editor) -> str | None:
    found: list[tuple[list[Json], Json]] = [
        (block, one)
        for block in editor.blocks()
        for one in block
        if one["opcode"] in ("AllEngineBarrier", "GroupResetSemaphores")
    ]
    if not found:
        return None
    block, chosen = editor.rng.choice(found)
    if chosen["opcode"] == "AllEngineBarrier":
        block.remove(chosen)
        return f"barrier {chosen['name']} is gone"
    gone = editor.rng.choice(chosen["sema_group"])
    chosen["sema_group"].remove(gone)
    return f"{chosen['name']} no longer resets semaphore {gone}"


_CAN_READ_ANYTHING = ("TensorCopy", "Activation", "DMACopy", "DMATrigger")


def mark_uninitialised(editor: Editor) -> str | None:
    markable = [one for one in editor.instructions() if one["opcode"] in _CAN_READ_ANYTHING]
    if not markable:
        return None
    chosen = editor.rng.choice(markable)
    chosen["can_read_uninit"] = True
    dropped = drop_wait(editor)
    return f"{chosen['name']} may read uninitialised memory; {dropped}"


def repeat_name(editor: Editor) -> str | None:
    plain = [one for one in editor.instructions() if one["engine"] != "ALL"]
    if len(plain) < 2:
        return None
    first, second = editor.rng.sample(plain, 2)
    before, second["name"] = second["name"], first["name"]
    for one in plain:
        for wait in one.get("sync_info", {}).get("on_wait", []):
            if wait["from"] == before:
                wait["from"] = first["name"]
        for entry in one.get("dependencies", []):
            if entry[0] == before:
                entry[0] = first["name"]
    return f"{before} is called {first['name']} too"


def move_queue(editor: Editor) -> str | None:
    queued = [one for one in editor.instructions() if one["opcode"] == "DMACopy" and one.get("queue")]
    if not queued:
        return None
    chosen = editor.rng.choice(queued)
    chosen["queue"] = f"{chosen['queue']}2"
    if all(queue["name"] != chosen["queue"] for queue in editor.document["queues"]):
        editor.document["queues"].append({"name": chosen["queue"], "blocks": []})
    return f"{chosen['name']} moves to queue {chosen['queue']}"


def address_by_register(editor: Editor) -> str | None:
    operands = editor.operands()
    if not operands:
        return None
    owner, operand = editor.rng.choice(operands)
    kept = {"dtype": operand["dtype"], "memsetref": operand["memsetref"], "ap": operand["ap"]}
    name = operand["memref"]
    operand.clear()
    operand |= {"kind": "register_ap", "regref": "r0", **kept}
    return f"{owner['name']}: a register addresses {name}"


MUTATIONS: dict[str, Mutation] = {
    "M1": drop_dependency,
    "M2": drop_wait,
    "M3": lower_wait,
    "M4": rename_producer,
    "M5": drop_update,
    "M6": swap_neighbours,
    "M7": move_engine,
    "M8": shift_address,
    "M9": interleave,
    "M10": weaken_fence,
    "M11": mark_uninitialised,
    "M12": repeat_name,
    "M13": move_queue,
    "M14": address_by_register,
}


def mutate(document: Json, mutation: str, seed: int) -> Mutant | None:
    """The document with one mutation of `MUTATIONS` at a random place. The document itself stays as it is."""
    editor = Editor(document, random.Random(f"{mutation} {seed}"))
    change = MUTATIONS[mutation](editor)
    return None if change is None else Mutant(mutation, change, editor.document)
