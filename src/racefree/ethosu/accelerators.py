"""The accelerators whose streams can be read, with what each can have in flight and where its on-chip buffers lie."""

from __future__ import annotations

from dataclasses import dataclass

from racefree.errors import InputError, Refused

BANK_BYTES = 1024
LUT_BYTES = 2048
LUT_SLOT_BYTES = 256
OUTSTANDING_KERNELS = 2


@dataclass(frozen=True, slots=True)
class Accelerator:
    """`macs` are per core and cycle, `shram_banks` per core. All supported ones read input channels eight at a time."""

    name: str
    macs: int
    cores: int
    shram_banks: int
    outstanding_dmas: int
    input_channels: int = 8

    @property
    def reserves_lut(self) -> bool:
        """The last two banks hold nothing but lookup tables."""
        return self.shram_banks > 16

    @property
    def lut_start(self) -> int:
        """First byte of the lookup tables in the on-chip buffer: its last two banks."""
        return (self.shram_banks - 2) * BANK_BYTES


ACCELERATORS = (
    Accelerator("ethos-u55-32", 32, 1, 16, 1),
    Accelerator("ethos-u55-64", 64, 1, 16, 1),
    Accelerator("ethos-u55-128", 128, 1, 24, 1),
    Accelerator("ethos-u55-256", 256, 1, 48, 1),
    Accelerator("ethos-u65-256", 256, 1, 48, 2),
    Accelerator("ethos-u65-512", 256, 2, 48, 2),
)

_PRODUCTS = {0: "ethos-u55", 1: "ethos-u65"}


def by_name(name: str) -> Accelerator:
    """An accelerator by its name, in either spelling (`ethos-u55-128`, `Ethos_U55_128`)."""
    wanted = name.lower().replace("_", "-")
    for accelerator in ACCELERATORS:
        if accelerator.name == wanted:
            return accelerator
    known = ", ".join(accelerator.name for accelerator in ACCELERATORS)
    raise InputError(f"unknown accelerator {name!r}: expected one of {known}")


def by_config_word(word: int) -> Accelerator:
    """The accelerator a driver payload was made for: product in the top four bits, log2 of all MACs in the lowest."""
    product = _PRODUCTS.get(word >> 28)
    if product is None:
        raise Refused("accelerator", f"the payload is for product {word >> 28}, which is not known here")
    macs = 1 << (word & 15)
    for accelerator in ACCELERATORS:
        if accelerator.name.startswith(product) and accelerator.macs * accelerator.cores == macs:
            return accelerator
    raise Refused("accelerator", f"the payload is for {product} with {macs} MACs, which is not known here")
