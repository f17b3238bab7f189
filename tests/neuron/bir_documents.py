"""Builds small BIR documents by hand: one line for each location and each instruction."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def location(name: str, kind: str = "SB", *, addr: int = 0, dims: list[int] | None = None, **more: Any) -> Json:
    return {"name": name, "type": kind, "addr": addr, "dims": dims or [4, 64], "allocated": True, **more}


def tensor(entry: Json, *, kind: str = "Internal", **more: Any) -> Json:
    return {"name": f"{entry['name']}_set", "kind": kind, "dtype": "float32", "memorylocations": [entry], **more}


def ap(
    name: str, pairs: list[list[int]] | None = None, *, dtype: str = "float32", offset: int = 0, **more: Any
) -> Json:
    """By default the whole [4, 64 bytes] tile."""
    return {
        "kind": "physical_ap",
        "memref": name,
        "memsetref": f"{name}_set",
        "dtype": dtype,
        "ap": pairs or [[16, 4], [1, 16]],
        "offset": offset,
        **more,
    }


def instruction(
    name: str,
    engine: str,
    *,
    opcode: str = "TensorCopy",
    reads: list[Json] | None = None,
    writes: list[Json] | None = None,
    after: list[Any] | None = None,
    waits: list[tuple[str, int, int]] | None = None,
    updates: list[tuple[int, int]] | None = None,
    **more: Any,
) -> Json:
    made: Json = {"name": name, "opcode": opcode, "engine": engine, "ins": reads or [], "outs": writes or []}
    if after:
        made["dependencies"] = after
    sync: Json = {}
    if waits:
        sync["on_wait"] = [{"from": source, "id": number, "wait_value": value} for source, number, value in waits]
    if updates:
        sync["on_update"] = [{"id": number, "update_value": amount} for number, amount in updates]
    return made | ({"sync_info": sync} if sync else {}) | more


def load(name: str, target: str, **more: Any) -> Json:
    """A transfer of the DRAM tensor x into a tile, on engine SP and queue q."""
    return instruction(
        name, more.pop("engine", "SP"), opcode="DMACopy", reads=[ap("x", [[1, 64]])], writes=[ap(target)],
        queue=more.pop("queue", "q"), **more,
    )  # fmt: skip


STANDARD = [
    tensor(location("x", "DRAM", dims=[4, 64]), kind="ExternalInput"),
    tensor(location("y", "DRAM", dims=[4, 64]), kind="ExternalOutput"),
    tensor(location("a")),
    tensor(location("b", addr=64)),
    tensor(location("p", "PSUM")),
]


def module(
    instructions: list[Json] | dict[str, list[Json]],
    *,
    allocations: list[Json] | None = None,
    queues: list[Json] | None = None,
    core: int | None = 0,
    **more: Any,
) -> Json:
    """`instructions` of one block, or of several by name. Queues that instructions name exist without being given."""
    blocks = instructions if isinstance(instructions, dict) else {"Block1": instructions}
    used = {one["queue"] for block in blocks.values() for one in block if one.get("queue")}
    given = {queue["name"] for queue in queues or []}
    function = {
        "name": "sg0000",
        "attributes": [],
        "allocations": STANDARD if allocations is None else allocations,
        "blocks": [{"name": name, "instructions": block} for name, block in blocks.items()],
    }
    return {
        "version": 2,
        "arch": "gen3",
        "attributes": {} if core is None else {"neuron_core_id": core},
        "functions": [function],
        "queues": [*(queues or []), *({"name": name, "blocks": []} for name in sorted(used - given))],
        **more,
    }
