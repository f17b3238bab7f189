"""Whole instances, and single accesses of a race, by plain evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Program
from racefree.proof.replay.events import Event, Options, Pid, Steps
from racefree.proof.replay.lanes import Lanes
from racefree.proof.replay.machine import steps
from racefree.proof.replay.memory import Memory, launch_memory

Oracle = Callable[[Event], Lanes | None]
"""Gives the value a load or atomic observes, or None for what the interpreter knows by itself."""


def drive(stepper: Steps, observe: Oracle | None = None) -> Iterator[Event]:
    """The accesses of a stepped instance; barriers are passed, observations come from `observe`."""
    reply: Lanes | None = None
    while True:
        try:
            step = stepper.send(reply)
        except StopIteration:
            return
        reply = None
        if isinstance(step, Event):
            yield step
            if observe is not None and step.access.result is not None:
                reply = observe(step)


def run_program(
    program: Program,
    facts: LaunchFacts,
    pid: Pid,
    memory: Memory | None = None,
    *,
    observe: Oracle | None = None,
    options: Options | None = None,
) -> list[Event]:
    """Every access of instance `pid`, in program order.

    `memory` holds the contents loads read; by default those recorded, without the storages this program may write.
    Raises `Unreplayable` when a value that decides an address, a mask, a branch or a bound is not known.
    """
    memory = launch_memory(program, facts) if memory is None else memory
    return list(drive(steps(program, facts, pid, memory, options), observe))


@dataclass(frozen=True, slots=True)
class Where:
    """One execution of one lane: access index, program id, loop iterations (outermost first, from 0), lane position."""

    access: int
    pid: Pid
    iterations: tuple[int, ...]
    lane: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SharedBytes:
    """Where two executions meet: both byte addresses and sizes, and the first byte they share."""

    first_address: int
    second_address: int
    byte: int


def confirm(
    program: Program,
    facts: LaunchFacts,
    first: Where,
    second: Where,
    *,
    memory: Memory | None = None,
    observe: Oracle | None = None,
) -> bool:
    """True when plain evaluation of both accesses shows that they happen and share a byte, one of them writing it.

    Raises `Unreplayable` when a value it needs is not known (contents, or what an atomic observed).
    """
    return shared_bytes(program, facts, first, second, memory=memory, observe=observe) is not None


def shared_bytes(
    program: Program,
    facts: LaunchFacts,
    first: Where,
    second: Where,
    *,
    memory: Memory | None = None,
    observe: Oracle | None = None,
) -> SharedBytes | None:
    """The bytes two executions touch, or None when one does not happen, none writes, or they do not meet."""
    if any(not 0 <= p < g for w in (first, second) for p, g in zip(w.pid, facts.grid, strict=True)):
        return None
    if first == second:
        return None
    memory = launch_memory(program, facts) if memory is None else memory
    found = [_find(program, facts, where, memory, observe) for where in (first, second)]
    spans = []
    for where, event in zip((first, second), found, strict=True):
        if event is None or not _active(event, where.lane):
            return None
        start = int(event.addresses[where.lane])
        spans.append((start, start + event.access.element_bytes, event.access.kind.writes))
    low, high = max(s[0] for s in spans), min(s[1] for s in spans)
    if low >= high or not any(s[2] for s in spans):
        return None
    return SharedBytes(spans[0][0], spans[1][0], low)


def _active(event: Event, lane: tuple[int, ...]) -> bool:
    if len(lane) != event.active.ndim or any(not 0 <= k < n for k, n in zip(lane, event.active.shape, strict=True)):
        return False
    return bool(np.asarray(event.active)[lane])


def _find(program: Program, facts: LaunchFacts, where: Where, memory: Memory, observe: Oracle | None) -> Event | None:
    for event in drive(steps(program, facts, where.pid, memory), observe):
        if event.index == where.access and event.iterations == where.iterations:
            return event
    return None
