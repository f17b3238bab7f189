"""Which operations of a stream race, from the operations given to Vela and the plain sequence of its commands.

Shares nothing with the reader: addresses come from element coordinates, order from replaying the stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from ethosu.vela import api
from ethosu.vela.ethos_u55_regs.ethos_u55_regs import cmd0
from ethosu.vela.register_command_stream_util import get_strides
from vela_streams import INTERNAL

SPACE_BYTES = 1 << 18
Mask = npt.NDArray[np.bool_]
Touched = dict[int, Mask]

_KERNEL_CODES = (cmd0.NPU_OP_CONV, cmd0.NPU_OP_DEPTHWISE, cmd0.NPU_OP_POOL, cmd0.NPU_OP_ELEMENTWISE)
_SHRAM_BANKS = {"32": 16, "64": 16, "128": 24, "256": 48, "512": 48}


def command_sequence(words: Sequence[int]) -> Iterator[tuple[int, str, int]]:
    """(word index, what, parameter) for everything that runs or waits, and every setting of BLOCKDEP."""
    at = 0
    while at < len(words):
        code, parameter = words[at] & 0x3FF, words[at] >> 16
        if words[at] & 0x4000:
            at += 2
            continue
        if code == cmd0.NPU_OP_DMA_START.value:
            yield at, "dma", parameter
        elif code == cmd0.NPU_OP_DMA_WAIT.value:
            yield at, "dma wait", parameter
        elif code == cmd0.NPU_OP_KERNEL_WAIT.value:
            yield at, "kernel wait", parameter
        elif code in [one.value for one in _KERNEL_CODES]:
            yield at, "kernel", parameter
        elif code == cmd0.NPU_SET_BLOCKDEP.value:
            yield at, "blockdep", parameter
        at += 1


def _mask(touched: Touched, region: int) -> Mask:
    return touched.setdefault(region, np.zeros(SPACE_BYTES, dtype=bool))


def _add_range(touched: Touched, part: Any) -> None:
    _mask(touched, part.region)[part.address : part.address + part.length] = True


def _add_elements(touched: Touched, fm: Any, rows: list[int], columns: list[int], channels: list[int]) -> None:
    if not rows or not columns or not channels:
        return
    y, x, c = np.meshgrid(rows, columns, channels, indexing="ij")
    right = x >= fm.tiles.width_0
    below = y >= np.where(right, fm.tiles.height_1, fm.tiles.height_0)
    base = np.array(fm.tiles.addresses)[right + 2 * below]
    x = np.where(right, x - fm.tiles.width_0, x)
    y = np.where(below, y - np.where(right, fm.tiles.height_1, fm.tiles.height_0), y)
    strides, size = get_strides(fm), fm.data_type.size_in_bytes()
    if fm.layout is api.NpuLayout.NHWC:
        start = base + y * strides.height + x * strides.width + c * size
    else:
        start = base + y * strides.height + x * 16 * size + (c // 16) * strides.depth + (c % 16) * size
    mask = _mask(touched, fm.region)
    for byte in range(size):
        mask[start + byte] = True


def _everything(fm: Any) -> tuple[list[int], list[int], list[int]]:
    return list(range(fm.shape.height)), list(range(fm.shape.width)), list(range(fm.shape.depth))


def _blocks(operation: Any) -> list[tuple[list[int], list[int], list[int]]]:
    shape, block = operation.ofm.shape, operation.block_config
    found = []
    for y in range(0, shape.height, block.height):
        for x in range(0, shape.width, block.width):
            for c in range(0, shape.depth, block.depth):
                found.append(
                    (
                        list(range(y, min(y + block.height, shape.height))),
                        list(range(x, min(x + block.width, shape.width))),
                        list(range(c, min(c + block.depth, shape.depth))),
                    )
                )
    return found


def _inputs_along(outputs: list[int], size: int, taps: int, step: int, before: int, scale: int) -> list[int]:
    positions = {o * step - before + tap for o in outputs for tap in range(taps)}
    return sorted({at // scale for at in positions if 0 <= at < size * scale})


def _job_inputs(operation: Any) -> Iterator[Touched]:
    """What each job reads of the inputs, in order."""
    for rows, columns, channels in _blocks(operation):
        if isinstance(operation, api.NpuElementWiseOperation):
            touched: Touched = {}
            _add_elements(touched, operation.ifm, rows, columns, channels)
            if operation.ifm2 is not None:
                shape = operation.ifm2.shape
                picked = [
                    [0] if one == 1 else given for one, given in zip(shape, (rows, columns, channels), strict=True)
                ]
                _add_elements(touched, operation.ifm2, *picked)
            yield touched
            continue
        kernel, padding, shape = operation.kernel, operation.padding, operation.ifm.shape
        scale = 1 if operation.ifm_upscale is api.NpuResamplingMode.NONE else 2
        in_rows = _inputs_along(rows, shape.height, kernel.height, kernel.stride_y, padding.top, scale)
        in_columns = _inputs_along(columns, shape.width, kernel.width, kernel.stride_x, padding.left, scale)
        if not isinstance(operation, api.NpuConv2DOperation):
            touched = {}
            _add_elements(touched, operation.ifm, in_rows, in_columns, channels)
            yield touched
            continue
        group = min(256 // operation.ifm.data_type.size_in_bits(), -(-shape.depth // 8) * 8)
        for first in range(0, shape.depth, group):
            touched = {}
            _add_elements(
                touched, operation.ifm, in_rows, in_columns, list(range(first, min(first + group, shape.depth)))
            )
            yield touched


def _uses_lut(operation: Any) -> bool:
    return operation.activation is not None and operation.activation.op_type is api.NpuActivationOp.TABLE_LOOKUP


def _merge(parts: Iterator[Touched]) -> Touched:
    merged: Touched = {}
    for part in parts:
        for region, mask in part.items():
            _mask(merged, region)[:] |= mask
    return merged


def _meet(one: Touched, other: Touched) -> bool:
    return any(bool((mask & other[region]).any()) for region, mask in one.items() if region in other)


@dataclass
class _Operation:
    """Byte masks of one operation. `early` reads begin at issue, `scratch` is written when its inputs are read."""

    operation: Any
    at: int
    dma: bool
    block_dependency: int = 0
    reads: Touched = field(default_factory=dict)
    writes: Touched = field(default_factory=dict)
    early: Touched = field(default_factory=dict)
    scratch: Touched = field(default_factory=dict)
    late: Touched = field(default_factory=dict)

    def conflicts(self, other: _Operation) -> bool:
        mine, theirs = [self.writes, self.scratch], [other.writes, other.scratch]
        ours_all = [*mine, self.reads, self.early, self.late]
        theirs_all = [*theirs, other.reads, other.early, other.late]
        return any(_meet(w, t) for w in mine for t in theirs_all) or any(_meet(w, t) for w in theirs for t in ours_all)


def _describe(operation: Any, at: int, dependency: int, accelerator: Any) -> _Operation:
    if isinstance(operation, api.NpuDmaOperation):
        made = _Operation(operation, at, True)
        _add_range(made.reads, operation.src)
        _add_range(made.writes, operation.dest)
        return made
    made = _Operation(operation, at, False, dependency)
    made.reads = _merge(_job_inputs(operation))
    _add_elements(made.writes, operation.ofm, *_everything(operation.ofm))
    for part in [*operation.weights, *operation.biases]:
        _add_range(made.early, part)
    banks = _SHRAM_BANKS[accelerator.name.rsplit("_", 1)[1]]
    table = api.NpuAddressRange(INTERNAL, (banks - 2) * 1024, 2048)
    if _uses_lut(operation):
        narrow = operation.ifm.data_type.size_in_bytes() == operation.ofm.data_type.size_in_bytes() == 1
        slot = operation.activation.lookup_table_index * 256
        _add_range(made.late, api.NpuAddressRange(INTERNAL, table.address + slot, 256) if narrow else table)
    elif banks == 16:
        _add_range(made.scratch, table)
    return made


def _adjacent_race(before: _Operation, after: _Operation) -> bool:
    """Back-to-back kernels: job i of the second against the blocks of the first that may still be running."""
    if _meet(before.writes, after.early):
        return True
    depth = after.block_dependency
    jobs = list(_job_inputs(after.operation))
    blocks = _blocks(before.operation)
    for job in range(min(depth, len(jobs))):
        for back in range(min(depth - job, len(blocks))):
            block: Touched = {}
            _add_elements(block, before.operation.ofm, *blocks[len(blocks) - 1 - back])
            if _meet(block, jobs[job]):
                return True
    return depth > 0 and _meet(before.late, after.scratch)


@dataclass(frozen=True)
class Found:
    """Racing pairs as word indices of the operations. `transfers` are pairs of transfers, kept apart."""

    races: frozenset[tuple[int, int]]
    transfers: frozenset[tuple[int, int]]


def races(words: Sequence[int], given: Sequence[Any], accelerator: Any) -> Found:
    """Replays the stream; an operation is ordered after those known to have finished when it is issued."""
    operations: list[_Operation] = []
    running: dict[bool, list[_Operation]] = {True: [], False: []}
    limits = {True: 2 if "U65" in accelerator.name else 1, False: 2}
    found: set[tuple[int, int]] = set()
    transfers: set[tuple[int, int]] = set()
    dependency = 0
    upcoming = iter(given)
    for at, what, parameter in command_sequence(words):
        if what == "blockdep":
            dependency = parameter
        elif what.endswith("wait"):
            line = running[what == "dma wait"]
            del line[: max(0, len(line) - parameter)]
        else:
            now = _describe(next(upcoming), at, dependency, accelerator)
            line = running[now.dma]
            del line[: max(0, len(line) - limits[now.dma] + 1)]
            for other in running[not now.dma]:
                if other.conflicts(now):
                    found.add((other.at, at))
            for other in line:
                if now.dma and other.conflicts(now):
                    transfers.add((other.at, at))
                elif not now.dma and _adjacent_race(other, now):
                    found.add((other.at, at))
            line.append(now)
            operations.append(now)
    return Found(frozenset(found), frozenset(transfers))
