"""The event logs of Pallas kernels as engine programs: cores are engines, transfers complete off their core."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from racefree.access import Dim, Pattern
from racefree.engines.builder import ProgramBuilder
from racefree.engines.program import AccessFlag, EngineProgram, InstructionFlag, MemoryKind, Timing

EVENTS = Path(__file__).parent / "pallas" / "events.json"


@dataclass(frozen=True)
class Case:
    """One kernel with some of its waits. The counts say in how many of `runs` the interpreter reported a race."""

    kernel: str
    waits: tuple[str, ...]
    runs: int
    reported_at_default: int
    reported_with_many_slots: int
    events: tuple[dict[str, Any], ...]

    @property
    def reported(self) -> bool:
        return self.reported_at_default + self.reported_with_many_slots > 0


def cases() -> list[Case]:
    stored = json.loads(EVENTS.read_text())["cases"]
    return [Case(**(one | {"waits": tuple(one["waits"]), "events": tuple(one["events"])})) for one in stored]


def _pattern(region: dict[str, Any]) -> Pattern:
    strides, size = [], region["itemsize"]
    for extent in reversed(region["shape"]):
        strides.insert(0, size)
        size *= extent
    start = sum(part[0] * stride for part, stride in zip(region["range"], strides, strict=True))
    dims = [Dim(part[2] * stride, len(range(*part))) for part, stride in zip(region["range"], strides, strict=True)]
    return Pattern(start, region["itemsize"], tuple(dims))


def program(case: Case) -> EngineProgram:
    """Waits take away what they waited for, so the n-th wait on a semaphore asks for the sum of the first n."""
    builder = ProgramBuilder(case.kernel)
    waited: dict[str, int] = {}
    cores = [builder.engine(f"core{one}") for one in sorted({event["core"] for event in case.events} - {-1})]

    def touch(row: int, region: dict[str, Any], flags: AccessFlag) -> None:
        space = builder.space(MemoryKind.DRAM, region["buffer"])
        buffer = builder.buffer(region["buffer"], space, initialised=True)
        builder.access(row, builder.footprint(space, _pattern(region)), buffer, flags)

    for number, event in enumerate(case.events):
        if event["event"] == "barrier":
            if len(cores) > 1:
                builder.barrier(f"barrier {number}", "barrier", cores)
            continue
        core = builder.engine(f"core{event['core']}")
        name = f"{event['event']} {number}"
        match event["event"]:
            case "read" | "write" as kind:
                row = builder.instruction(name, kind, core)
                touch(row, event["at"], AccessFlag.WRITE if kind == "write" else AccessFlag.NONE)
            case "dma":
                row = builder.instruction(name, "dma", core, flags=InstructionFlag.ASYNC)
                touch(row, event["source"], AccessFlag.NONE)
                touch(row, event["target"], AccessFlag.WRITE)
                if event["source_semaphore"] is not None:
                    sent = builder.semaphore(event["source_semaphore"])
                    builder.update(row, sent, event["size"], timing=Timing.INPUTS_READ)
                builder.update(row, builder.semaphore(event["target_semaphore"]), event["size"])
            case "wait":
                waited[event["semaphore"]] = waited.get(event["semaphore"], 0) + event["value"]
                row = builder.instruction(name, "wait", core)
                builder.wait(row, builder.semaphore(event["semaphore"]), waited[event["semaphore"]])
            case "signal":
                row = builder.instruction(name, "signal", core)
                builder.update(row, builder.semaphore(event["semaphore"]), event["value"])
    return builder.build()
