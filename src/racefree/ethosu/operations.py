"""A command stream as operations: every register value an operation depends on, resolved at the command that runs it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from racefree.errors import InputError, Refused
from racefree.ethosu.commands import Command
from racefree.ethosu.feature_map import FeatureMap

INTERNAL = 1 << 8
ON_CHIP = "shram"

_UNARY = (5, 6, 7)
_SCALAR_OPERAND = 1 << 7
_GLOBAL_SCALE = 1 << 8
_BRICK_FORMAT = 1 << 6


@dataclass(frozen=True, slots=True)
class Range:
    """Contiguous bytes. Not exact: whether the operation reads them at all depends on what the stream does not say."""

    space: str
    start: int
    length: int
    exact: bool = True


@dataclass(frozen=True, slots=True)
class Dma:
    at: int
    source: Range
    target: Range


@dataclass(frozen=True, slots=True)
class Window:
    """How output positions map to input positions along one axis: `step * o - before + [0, size)`, clipped."""

    size: int
    step: int
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class Kernel:
    """One convolution, pooling or elementwise operation. Shapes are (rows, columns, channels)."""

    at: int
    name: str
    ifm: FeatureMap
    ofm: FeatureMap
    ifm2: FeatureMap | None
    ifm2_repeats: tuple[bool, bool, bool]
    shape: tuple[int, int, int]
    input_channels: int
    block: tuple[int, int, int]
    rows: Window
    columns: Window
    upscales: bool
    block_dependency: int
    constants: tuple[Range, ...]
    lookup: int | None

    @property
    def reduces_channels(self) -> bool:
        """Every output channel needs every input channel."""
        return self.name in ("CONV", "REDUCE_SUM")


@dataclass(frozen=True, slots=True)
class Wait:
    """Stops the issue of commands until at most `left` operations of one kind are still running."""

    at: int
    dma: bool
    left: int


Operation = Dma | Kernel | Wait

_KERNELS = {"OP_CONV": "CONV", "OP_DEPTHWISE": "DEPTHWISE", "OP_POOL": "POOL", "OP_ELEMENTWISE": "ELEMENTWISE"}
_POOLS = ("MAX_POOL", "AVERAGE_POOL", "REDUCE_SUM")


def operations(stream: Iterable[Command]) -> Iterator[Operation]:
    """Operations and waits in order. Raises InputError when one runs before its registers are set."""
    registers: dict[str, int] = {}
    for command in stream:
        if not command.runs:
            registers[command.name] = command.value
            continue
        reader = _Registers(registers, command)
        match command.name:
            case "OP_DMA_START":
                yield _dma(reader)
            case "OP_DMA_WAIT" | "OP_KERNEL_WAIT":
                if command.value >> 4:
                    raise Refused("channel", f"word {command.at}: waits on channel {command.value >> 4}")
                yield Wait(command.at, command.name == "OP_DMA_WAIT", command.value & 15)
            case name if name in _KERNELS:
                yield _kernel(reader)


class _Registers:
    """Register values as one command sees them."""

    def __init__(self, values: dict[str, int], command: Command) -> None:
        self.values = values
        self.command = command

    def __getitem__(self, name: str) -> int:
        if name not in self.values:
            raise InputError(f"word {self.command.at}: {self.command.name} runs before register {name} is set")
        return self.values[name]

    def space(self, register: str) -> str:
        region = self[register]
        return ON_CHIP if region & INTERNAL else f"region{region & 0xFF}"

    def range(self, region: str, base: str, length: str, *, exact: bool = True) -> Range:
        return Range(self.space(region), self[base], self[length], exact)


def _dma(registers: _Registers) -> Dma:
    command = registers.command
    if command.value:
        raise Refused("dma-mode", f"word {command.at}: a transfer in mode {command.value}; only plain ones are known")
    source = registers.range("DMA0_SRC_REGION", "DMA0_SRC", "DMA0_LEN")
    return Dma(command.at, source, registers.range("DMA0_DST_REGION", "DMA0_DST", "DMA0_LEN"))


def _map(registers: _Registers, prefix: str, element_bytes: int, bricks: bool) -> FeatureMap:
    bases = tuple(registers[f"{prefix}_BASE{tile}"] for tile in range(4))
    return FeatureMap(
        space=registers.space(f"{prefix}_REGION"),
        bases=(bases[0], bases[1], bases[2], bases[3]),
        height0=registers[f"{prefix}_HEIGHT0_M1"] + 1,
        height1=(registers[f"{prefix}_HEIGHT1_M1"] + 1) & 0xFFFF,
        width0=registers[f"{prefix}_WIDTH0_M1"] + 1,
        stride_y=registers[f"{prefix}_STRIDE_Y"],
        stride_x=registers[f"{prefix}_STRIDE_X"],
        stride_c=registers[f"{prefix}_STRIDE_C"],
        element_bytes=element_bytes,
        bricks=bricks,
    )


def _input(registers: _Registers, prefix: str) -> FeatureMap:
    precision = registers[f"{prefix}_PRECISION"]
    return _map(registers, prefix, 1 << (precision >> 2 & 3), bool(precision & _BRICK_FORMAT))


def _windows(registers: _Registers, elementwise: bool) -> tuple[Window, Window]:
    if elementwise:
        return Window(1, 1, 0, 0), Window(1, 1, 0, 0)
    stride = registers["KERNEL_STRIDE"]
    step_x = 1 + (stride & 1) + 2 * (stride >> 6 & 7)
    step_y = 1 + (stride >> 1 & 1) + 2 * (stride >> 9 & 7)
    rows = Window(registers["KERNEL_HEIGHT_M1"] + 1, step_y, registers["IFM_PAD_TOP"], registers["IFM_PAD_BOTTOM"])
    columns = Window(registers["KERNEL_WIDTH_M1"] + 1, step_x, registers["IFM_PAD_LEFT"], registers["IFM_PAD_RIGHT"])
    return rows, columns


def _kernel(registers: _Registers) -> Kernel:
    command = registers.command
    name = _KERNELS[command.name]
    if name == "POOL":
        if command.value >= len(_POOLS):
            raise Refused("pooling-mode", f"word {command.at}: pooling mode {command.value} is not known")
        name = _POOLS[command.value]
    precision = registers["OFM_PRECISION"]
    elementwise = name == "ELEMENTWISE"
    binary = elementwise and command.value not in _UNARY
    broadcast = registers["IFM2_BROADCAST"] if binary else _SCALAR_OPERAND
    rows, columns = _windows(registers, elementwise)
    activation = registers["ACTIVATION"] & 31
    return Kernel(
        at=command.at,
        name=name,
        ifm=_input(registers, "IFM"),
        ofm=_map(registers, "OFM", 1 << (precision >> 1 & 3), bool(precision & _BRICK_FORMAT)),
        ifm2=None if broadcast & _SCALAR_OPERAND else _input(registers, "IFM2"),
        ifm2_repeats=(bool(broadcast & 1), bool(broadcast & 2), bool(broadcast & 4)),
        shape=(registers["OFM_HEIGHT_M1"] + 1, registers["OFM_WIDTH_M1"] + 1, registers["OFM_DEPTH_M1"] + 1),
        input_channels=registers["IFM_DEPTH_M1"] + 1,
        block=(
            registers["OFM_BLK_HEIGHT_M1"] + 1,
            registers["OFM_BLK_WIDTH_M1"] + 1,
            registers["OFM_BLK_DEPTH_M1"] + 1,
        ),
        rows=rows,
        columns=columns,
        upscales=bool(registers["IFM_UPSCALE"]),
        block_dependency=registers["BLOCKDEP"],
        constants=tuple(_constants(registers, name, precision)),
        lookup=activation - 16 if activation >= 16 else None,
    )


def _constants(registers: _Registers, name: str, precision: int) -> Iterator[Range]:
    """Weight and scale streams. Pooling and elementwise operations have no weights, and scales only sometimes."""
    cores = ("", "1")
    if name in ("CONV", "DEPTHWISE"):
        for core in cores:
            if core == "" or registers.values.get(f"WEIGHT{core}_LENGTH"):
                yield registers.range("WEIGHT_REGION", f"WEIGHT{core}_BASE", f"WEIGHT{core}_LENGTH")
    if precision & _GLOBAL_SCALE:
        return
    for core in cores:
        if registers.values.get(f"SCALE{core}_LENGTH") and "SCALE_REGION" in registers.values:
            yield registers.range(
                "SCALE_REGION", f"SCALE{core}_BASE", f"SCALE{core}_LENGTH", exact=name in ("CONV", "DEPTHWISE")
            )
