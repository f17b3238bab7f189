"""Words of a register command stream, and the driver payload around them.

A command's low 16 bits are its code, the high 16 its parameter; codes with bit 14 set are followed by a 32-bit word.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from racefree.errors import InputError, Refused
from racefree.ethosu.accelerators import Accelerator, by_config_word

MAGIC = b"COP1"

_CODE_BITS = 0x03FF
_MODE_BITS = 0xC000
_WITH_WORD = 0x4000

_OPERATIONS = {
    0x000: "OP_STOP",
    0x001: "OP_IRQ",
    0x002: "OP_CONV",
    0x003: "OP_DEPTHWISE",
    0x005: "OP_POOL",
    0x006: "OP_ELEMENTWISE",
    0x010: "OP_DMA_START",
    0x011: "OP_DMA_WAIT",
    0x012: "OP_KERNEL_WAIT",
    0x013: "OP_PMU_MASK",
}

_PARAMETERS = {
    0x100: "IFM_PAD_TOP",
    0x101: "IFM_PAD_LEFT",
    0x102: "IFM_PAD_RIGHT",
    0x103: "IFM_PAD_BOTTOM",
    0x104: "IFM_DEPTH_M1",
    0x105: "IFM_PRECISION",
    0x107: "IFM_UPSCALE",
    0x109: "IFM_ZERO_POINT",
    0x10A: "IFM_WIDTH0_M1",
    0x10B: "IFM_HEIGHT0_M1",
    0x10C: "IFM_HEIGHT1_M1",
    0x10D: "IFM_IB_END",
    0x10F: "IFM_REGION",
    0x111: "OFM_WIDTH_M1",
    0x112: "OFM_HEIGHT_M1",
    0x113: "OFM_DEPTH_M1",
    0x114: "OFM_PRECISION",
    0x115: "OFM_BLK_WIDTH_M1",
    0x116: "OFM_BLK_HEIGHT_M1",
    0x117: "OFM_BLK_DEPTH_M1",
    0x118: "OFM_ZERO_POINT",
    0x11A: "OFM_WIDTH0_M1",
    0x11B: "OFM_HEIGHT0_M1",
    0x11C: "OFM_HEIGHT1_M1",
    0x11F: "OFM_REGION",
    0x120: "KERNEL_WIDTH_M1",
    0x121: "KERNEL_HEIGHT_M1",
    0x122: "KERNEL_STRIDE",
    0x123: "PARALLEL_MODE",
    0x124: "ACC_FORMAT",
    0x125: "ACTIVATION",
    0x126: "ACTIVATION_MIN",
    0x127: "ACTIVATION_MAX",
    0x128: "WEIGHT_REGION",
    0x129: "SCALE_REGION",
    0x12D: "AB_START",
    0x12F: "BLOCKDEP",
    0x130: "DMA0_SRC_REGION",
    0x131: "DMA0_DST_REGION",
    0x132: "DMA0_SIZE0",
    0x133: "DMA0_SIZE1",
    0x180: "IFM2_BROADCAST",
    0x181: "IFM2_SCALAR",
    0x185: "IFM2_PRECISION",
    0x189: "IFM2_ZERO_POINT",
    0x18A: "IFM2_WIDTH0_M1",
    0x18B: "IFM2_HEIGHT0_M1",
    0x18C: "IFM2_HEIGHT1_M1",
    0x18D: "IFM2_IB_START",
    0x18F: "IFM2_REGION",
}

_WORDS = {
    **{0x000 + i: f"IFM_BASE{i}" for i in range(4)},
    0x004: "IFM_STRIDE_X",
    0x005: "IFM_STRIDE_Y",
    0x006: "IFM_STRIDE_C",
    **{0x010 + i: f"OFM_BASE{i}" for i in range(4)},
    0x014: "OFM_STRIDE_X",
    0x015: "OFM_STRIDE_Y",
    0x016: "OFM_STRIDE_C",
    0x020: "WEIGHT_BASE",
    0x021: "WEIGHT_LENGTH",
    0x022: "SCALE_BASE",
    0x023: "SCALE_LENGTH",
    0x024: "OFM_SCALE",
    0x025: "OPA_SCALE",
    0x026: "OPB_SCALE",
    0x030: "DMA0_SRC",
    0x031: "DMA0_DST",
    0x032: "DMA0_LEN",
    0x033: "DMA0_SKIP0",
    0x034: "DMA0_SKIP1",
    **{0x080 + i: f"IFM2_BASE{i}" for i in range(4)},
    0x084: "IFM2_STRIDE_X",
    0x085: "IFM2_STRIDE_Y",
    0x086: "IFM2_STRIDE_C",
    0x090: "WEIGHT1_BASE",
    0x091: "WEIGHT1_LENGTH",
    0x092: "SCALE1_BASE",
    0x093: "SCALE1_LENGTH",
}

_ADDRESSES = ("BASE", "STRIDE", "DMA0_")
"""Registers whose value is 40 bits or more: the parameter holds the bits above the word."""


@dataclass(frozen=True, slots=True)
class Command:
    """`at` is the word's index in the stream. `value` is the parameter, or the word for registers that take one."""

    at: int
    name: str
    value: int

    @property
    def runs(self) -> bool:
        return self.name.startswith("OP_")


def commands(words: Sequence[int]) -> Iterator[Command]:
    """The commands of a stream, up to and with the stop. Raises Refused for a code that is not known."""
    at = 0
    while at < len(words):
        word = words[at]
        code, parameter, start = word & _CODE_BITS, word >> 16, at
        if word & _MODE_BITS == _WITH_WORD:
            at += 1
            if at == len(words):
                raise InputError(f"word {start}: the stream ends inside a command")
            name = _WORDS.get(code, "")
            value = words[at] | (parameter << 32 if any(part in name for part in _ADDRESSES) else 0)
        else:
            name = _OPERATIONS.get(code) or _PARAMETERS.get(code, "") if not word & _MODE_BITS else ""
            value = parameter
        if not name:
            raise Refused("unknown-command", f"word {start}: command code {word & 0xFFFF:#06x} is not known")
        yield Command(start, name, value)
        if name == "OP_STOP":
            return
        at += 1


_RESERVED, _CONFIG, _STREAM, _NOP = 0, 1, 2, 5


def unpack(payload: bytes) -> tuple[tuple[int, ...], Accelerator]:
    """The command words of a driver payload and the accelerator they are for."""
    if not payload.startswith(MAGIC) or len(payload) % 4:
        raise InputError("expected a driver payload: words that start with COP1")
    words = struct.unpack(f"<{len(payload) // 4}I", payload)
    accelerator: Accelerator | None = None
    at = 1
    while at < len(words):
        action = words[at] & 0xFF
        if action == _CONFIG and at + 2 < len(words):
            accelerator = by_config_word(words[at + 1])
            at += 3
        elif action == _STREAM:
            length = (words[at] >> 16) | ((words[at] >> 8 & 0xFF) << 16)
            stream = words[at + 1 : at + 1 + length]
            if len(stream) != length:
                raise InputError(f"the payload announces {length} command words and has {len(stream)}")
            if accelerator is None:
                raise InputError("the payload does not say which accelerator it is for")
            return stream, accelerator
        elif action in (_RESERVED, _NOP):
            at += 1
        else:
            raise Refused("driver-action", f"driver action {action} at word {at} is not known")
    raise InputError("the payload holds no command stream")
