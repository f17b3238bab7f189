"""Counts what separates the accesses of one program instance: barriers, and reductions that work as barriers."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from racefree.graph.launch import LaunchFacts
from racefree.graph.program import Barrier, Data, For, Guard, If, Op, Statement, While, walk
from racefree.proof.footprint.arith import add, mul
from racefree.proof.footprint.values import Frame, Number, Unknown, constant
from racefree.proof.memory_model import memory_model


@dataclass(frozen=True, slots=True)
class Epoch:
    """How many barriers an execution has behind it, and how many barriers and block-wide reductions.

    Two executions of one program instance with different counts have one of them in between.
    """

    barriers: Number
    syncs: Number


@dataclass(frozen=True, slots=True)
class Rate:
    """What one iteration of a loop adds; None where iterations may differ."""

    barriers: int | None
    syncs: int | None


def start(axes: int) -> Epoch:
    return Epoch(constant(0, axes), constant(0, axes))


def is_barrier(statement: Statement) -> bool:
    """Only a barrier that orders global reads and writes orders accesses to global memory."""
    return isinstance(statement, Barrier) and statement.global_read and statement.global_write


def is_block_reduction(statement: Statement, facts: LaunchFacts) -> bool:
    """A reduction or scan that runs over all warps, which Triton does through a block-wide barrier (see `memory_model`)."""
    if not isinstance(statement, Op | Data) or statement.name not in ("tt.reduce", "tt.scan"):
        return False
    model = memory_model(facts.triton_version, facts.target)
    shape = statement.operands[0].shape
    long = [extent for extent in shape if extent > 1]
    return (
        model.barrier_in_reduction
        and facts.num_warps > 1
        and facts.num_ctas == 1
        and len(long) == 1
        and prod(shape) >= facts.num_warps * facts.warp_size
    )


def rate_of(body: tuple[Statement, ...], facts: LaunchFacts) -> Rate:
    """What every iteration of a loop with this body adds."""
    barriers: int | None = 0
    syncs: int | None = 0
    for statement in body:
        if is_barrier(statement):
            barriers = None if barriers is None else barriers + 1
            syncs = None if syncs is None else syncs + 1
        elif is_block_reduction(statement, facts):
            syncs = None if syncs is None else syncs + 1
        elif isinstance(statement, Guard | If | For | While):
            inner = list(walk((statement,)))
            if any(is_barrier(s) for s in inner):
                barriers = syncs = None
            elif any(is_block_reduction(s, facts) for s in inner):
                syncs = None
    return Rate(barriers, syncs)


def passed(epoch: Epoch, how_often: Number, frame: Frame, *, barrier: bool) -> Epoch:
    """After a barrier (or a block-wide reduction) that ran `how_often` times, 0 or 1."""
    syncs = add(epoch.syncs, how_often, 64, frame, ())
    return Epoch(add(epoch.barriers, how_often, 64, frame, ()) if barrier else epoch.barriers, syncs)


def lost(epoch: Epoch, why: Unknown, *, barrier: bool) -> Epoch:
    """After one that ran under a condition that is not known."""
    return Epoch(why if barrier else epoch.barriers, why)


def advanced(epoch: Epoch, rate: Rate, times: Number, frame: Frame, why: Unknown) -> Epoch:
    """After `times` iterations of a loop."""

    def moved(count: Number, each: int | None) -> Number:
        if each is None:
            return why
        if each == 0:
            return count
        axes = len(frame.loops)
        return add(count, mul(times, constant(each, axes), 64, frame, ()), 64, frame, ())

    return Epoch(moved(epoch.barriers, rate.barriers), moved(epoch.syncs, rate.syncs))
