"""Block jobs: the order in which a kernel makes its output, and what each job reads.

A kernel makes its output block by block: channels fastest, then columns, then rows. An operation that needs every input
channel for every output makes each block in as many jobs as its input has groups of channels.
"""

from __future__ import annotations

from racefree.ethosu.accelerators import Accelerator
from racefree.ethosu.feature_map import Box
from racefree.ethosu.operations import Kernel, Window

_GROUP_BITS = 8 * 32


def _ceil_div(value: int, by: int) -> int:
    return -(-value // by)


def block_count(kernel: Kernel) -> int:
    rows, columns, channels = (_ceil_div(size, part) for size, part in zip(kernel.shape, kernel.block, strict=True))
    return rows * columns * channels


def output_block(kernel: Kernel, index: int) -> Box:
    """The part of the output that block number `index` makes."""
    _, columns, channels = (_ceil_div(size, part) for size, part in zip(kernel.shape, kernel.block, strict=True))
    place = (index // (channels * columns), index // channels % columns, index % channels)
    ranges = [
        (at * part, min((at + 1) * part, size))
        for at, part, size in zip(place, kernel.block, kernel.shape, strict=True)
    ]
    return Box(ranges[0], ranges[1], ranges[2])


def whole_output(kernel: Kernel) -> Box:
    rows, columns, channels = kernel.shape
    return Box((0, rows), (0, columns), (0, channels))


def group_channels(kernel: Kernel, accelerator: Accelerator) -> int:
    """Input channels one job of a channel-reducing operation reads."""
    bits = 8 * kernel.ifm.element_bytes
    rounded = _ceil_div(kernel.input_channels, accelerator.input_channels) * accelerator.input_channels
    return min(_GROUP_BITS // bits, rounded)


def jobs_per_block(kernel: Kernel, accelerator: Accelerator) -> int:
    if kernel.name != "CONV":
        return 1
    return _ceil_div(kernel.input_channels, group_channels(kernel, accelerator))


def job_count(kernel: Kernel, accelerator: Accelerator) -> int:
    return block_count(kernel) * jobs_per_block(kernel, accelerator)


def job_input(kernel: Kernel, accelerator: Accelerator, index: int) -> Box:
    """What job number `index` reads of the first input."""
    per_block = jobs_per_block(kernel, accelerator)
    block = output_block(kernel, index // per_block)
    box = input_box(kernel, block)
    if per_block == 1:
        return box
    size = group_channels(kernel, accelerator)
    first = index % per_block * size
    return Box(box.rows, box.columns, (first, min(first + size, kernel.input_channels)))


def input_box(kernel: Kernel, output: Box) -> Box:
    """What the first input must hold for a part of the output."""
    channels = (0, kernel.input_channels) if kernel.reduces_channels else output.channels
    return Box(
        _span(kernel.rows, output.rows, kernel.shape[0], kernel.upscales),
        _span(kernel.columns, output.columns, kernel.shape[1], kernel.upscales),
        channels,
    )


def second_input_box(kernel: Kernel, output: Box) -> Box:
    """What the second input of an elementwise operation must hold: a repeated axis has one position."""
    rows, columns, channels = (
        (0, 1) if repeats else given
        for repeats, given in zip(kernel.ifm2_repeats, (output.rows, output.columns, output.channels), strict=True)
    )
    return Box(rows, columns, channels)


def _span(window: Window, output: tuple[int, int], size: int, upscales: bool) -> tuple[int, int]:
    low = max(0, output[0] * window.step - window.before)
    end = (size - 1) * window.step + window.size - window.before - window.after
    high = min((output[1] - 1) * window.step - window.before + window.size, end)
    if upscales:
        low, high = low // 2, _ceil_div(high, 2)
    return low, max(low, high)
