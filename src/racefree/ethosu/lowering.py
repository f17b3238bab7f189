"""Builds the engine program of a register command stream.

One command processor issues operations in order and never runs ahead of a wait. Transfers complete in the order in which
they were issued. Kernels pass through a pipeline in order: blocks are read in order, made in order and written in order,
so that a kernel's writes follow the reads and writes of the kernel before it. What the pipeline does not order is a
kernel's reads against the writes of the kernel just before it: BLOCKDEP n lets the reads of job i begin while the last
n - i blocks of that kernel are still being made. Weights and scales are fetched as soon as a kernel is issued.

The issue of a kernel or a transfer holds while as many of its kind are running as the accelerator can hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from racefree.access import Pattern, Site
from racefree.engines.builder import ProgramBuilder
from racefree.engines.program import AccessFlag, EngineProgram, InstructionFlag, MemoryKind
from racefree.ethosu import jobs
from racefree.ethosu.accelerators import LUT_BYTES, LUT_SLOT_BYTES, OUTSTANDING_KERNELS, Accelerator
from racefree.ethosu.commands import commands
from racefree.ethosu.feature_map import Box, FeatureMap
from racefree.ethosu.operations import ON_CHIP, Dma, Kernel, Operation, Range, Wait, operations

QUEUE = "dma"


@dataclass(slots=True)
class _Running:
    """The rows of a kernel that later ones refer to: its output blocks, the last `len(tail)` of them one by one."""

    kernel: Kernel
    tail: list[int] = field(default_factory=list)

    @property
    def done(self) -> int:
        return self.tail[-1]


def lower(words: Sequence[int], accelerator: Accelerator, *, name: str = "stream") -> EngineProgram:
    """The program of a command stream. Raises InputError or Refused when the stream cannot be read to its end."""
    return lower_operations(tuple(operations(commands(words))), accelerator, name=name)


def lower_operations(work: Iterable[Operation], accelerator: Accelerator, *, name: str = "stream") -> EngineProgram:
    """The program of operations and waits in issue order."""
    steps = tuple(work)
    lowering = _Lowering(accelerator, name)
    kernels = [one for one in steps if isinstance(one, Kernel)]
    following = {id(one): after.block_dependency for one, after in itertools.pairwise(kernels)}
    for step in steps:
        match step:
            case Dma():
                lowering.dma(step)
            case Wait():
                lowering.wait(step)
            case Kernel():
                lowering.kernel(step, following.get(id(step), 0))
            case _:
                assert_never(step)
    return lowering.builder.build()


class _Lowering:
    def __init__(self, accelerator: Accelerator, name: str) -> None:
        self.accelerator = accelerator
        self.name = name
        self.builder = ProgramBuilder(name)
        self.issue = self.builder.engine("issue")
        self.reads = self.builder.engine("kernel reads")
        self.constants = self.builder.engine("kernel constants")
        self.writes = self.builder.engine("kernel writes")
        self.queue = self.builder.queue(QUEUE)
        self.kernels: list[_Running] = []
        self.dmas: list[int] = []
        self.awaited = 0

    # ---- accesses ----------------------------------------------------------------------------------------------------

    def touch(self, row: int, space: str, pattern: Pattern, *, writes: bool, exact: bool = True) -> None:
        builder = self.builder
        kind = MemoryKind.SHARED if space == ON_CHIP else MemoryKind.DRAM
        where = builder.space(kind, space)
        flags = (AccessFlag.WRITE if writes else AccessFlag.NONE) | (AccessFlag.NONE if exact else AccessFlag.INEXACT)
        buffer = builder.buffer(space, where, initialised=True)
        builder.access(row, builder.footprint(where, pattern), buffer, flags)

    def touch_range(self, row: int, part: Range, *, writes: bool) -> None:
        if part.length:
            self.touch(row, part.space, Pattern(part.start, part.length), writes=writes, exact=part.exact)

    def touch_map(self, row: int, feature_map: FeatureMap, box: Box, *, writes: bool, exact: bool = True) -> None:
        for pattern in feature_map.patterns(box):
            self.touch(row, feature_map.space, pattern, writes=writes, exact=exact)

    def row(self, name: str, opcode: str, engine: int, at: int) -> int:
        return self.builder.instruction(name, opcode, engine, site=Site(self.name, at))

    # ---- operations --------------------------------------------------------------------------------------------------

    def wait(self, wait: Wait) -> None:
        opcode = "DMA_WAIT" if wait.dma else "KERNEL_WAIT"
        row = self.row(f"{opcode} {wait.left} @{wait.at}", opcode, self.issue, wait.at)
        if not wait.dma:
            if len(self.kernels) > wait.left:
                self.builder.depends(row, self.kernels[len(self.kernels) - 1 - wait.left].done)
            return
        for done in self.dmas[self.awaited : len(self.dmas) - wait.left]:
            self.builder.depends(row, done)
        self.awaited = max(self.awaited, len(self.dmas) - wait.left)

    def dma(self, dma: Dma) -> None:
        builder = self.builder
        label = f"DMA @{dma.at}"
        issued = self.row(f"{label} issue", "DMA_START", self.issue, dma.at)
        limit = self.accelerator.outstanding_dmas
        if len(self.dmas) >= limit:
            builder.depends(issued, self.dmas[-limit])
        row = builder.instruction(
            label, "DMA", self.issue, queue=self.queue, flags=InstructionFlag.ASYNC, site=Site(self.name, dma.at)
        )
        self.touch_range(row, dma.source, writes=False)
        self.touch_range(row, dma.target, writes=True)
        self.dmas.append(row)

    def kernel(self, kernel: Kernel, next_dependency: int) -> None:
        builder = self.builder
        label = f"{kernel.name} @{kernel.at}"
        issued = self.row(f"{label} issue", kernel.name, self.issue, kernel.at)
        if len(self.kernels) >= OUTSTANDING_KERNELS:
            builder.depends(issued, self.kernels[-OUTSTANDING_KERNELS].done)
        fetched = self.row(f"{label} constants", kernel.name, self.constants, kernel.at)
        builder.depends(fetched, issued)
        for part in kernel.constants:
            self.touch_range(fetched, part, writes=False)
        read = self.read_rows(kernel, label, issued)
        running = _Running(kernel, self.write_rows(kernel, label, next_dependency))
        builder.depends(running.tail[0], read[-1])
        builder.depends(running.tail[0], fetched)
        self.kernels.append(running)

    def read_rows(self, kernel: Kernel, label: str, issued: int) -> list[int]:
        """The first jobs one by one as far as BLOCKDEP lets them begin early, then the rest."""
        before = self.kernels[-1] if self.kernels else None
        early = kernel.block_dependency if before else 0
        count = jobs.job_count(kernel, self.accelerator)
        rows: list[int] = []
        # How a channel sum is cut into jobs is not documented, so its first jobs may read less than all channels.
        known = kernel.name != "REDUCE_SUM"
        for index in range(min(early, count)):
            row = self.row(f"{label} job {index}", kernel.name, self.reads, kernel.at)
            self.touch_map(row, kernel.ifm, jobs.job_input(kernel, self.accelerator, index), writes=False, exact=known)
            output = jobs.output_block(kernel, index // jobs.jobs_per_block(kernel, self.accelerator))
            self.read_others(row, kernel, output)
            if before and early - index < len(before.tail):
                self.builder.depends(row, before.tail[-1 - (early - index)])
            rows.append(row)
        if count > early:
            row = self.row(f"{label} jobs {early}..", kernel.name, self.reads, kernel.at)
            output = jobs.whole_output(kernel)
            self.touch_map(row, kernel.ifm, jobs.input_box(kernel, output), writes=False)
            self.read_others(row, kernel, output)
            if before:
                self.builder.depends(row, before.done)
            rows.append(row)
        self.builder.depends(rows[0], issued)
        return rows

    def read_others(self, row: int, kernel: Kernel, output: Box) -> None:
        """The second input, and the lookup tables that the working buffers overwrite on the smallest accelerators."""
        if kernel.ifm2 is not None:
            self.touch_map(row, kernel.ifm2, jobs.second_input_box(kernel, output), writes=False)
        if kernel.lookup is None and not self.accelerator.reserves_lut:
            self.touch(row, ON_CHIP, Pattern(self.accelerator.lut_start, LUT_BYTES), writes=True)

    def write_rows(self, kernel: Kernel, label: str, next_dependency: int) -> list[int]:
        """The last blocks one by one as far as the next kernel may overtake them, after one row for all others."""
        count = jobs.block_count(kernel)
        single = min(count, next_dependency)
        rows: list[int] = []
        if count > single:
            row = self.row(f"{label} blocks ..{count - single}", kernel.name, self.writes, kernel.at)
            self.touch_map(row, kernel.ofm, jobs.whole_output(kernel), writes=True)
            rows.append(row)
        for index in range(count - single, count):
            row = self.row(f"{label} block {index}", kernel.name, self.writes, kernel.at)
            self.touch_map(row, kernel.ofm, jobs.output_block(kernel, index), writes=True)
            rows.append(row)
        if kernel.lookup is not None:
            for row in rows:
                self.look_up(row, kernel)
        return rows

    def look_up(self, row: int, kernel: Kernel) -> None:
        """Byte tables fill one slot; wider ones may use all of them."""
        start = self.accelerator.lut_start
        narrow = kernel.ifm.element_bytes == kernel.ofm.element_bytes == 1
        slot = Pattern(start + (kernel.lookup or 0) * LUT_SLOT_BYTES, LUT_SLOT_BYTES)
        self.touch(row, ON_CHIP, slot if narrow else Pattern(start, LUT_BYTES), writes=False)
