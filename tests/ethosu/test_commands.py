"""Words, payloads and registers of a command stream."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import pytest

from racefree.errors import InputError, Refused
from racefree.ethosu import commands as reading
from racefree.ethosu.accelerators import ACCELERATORS, by_config_word, by_name
from racefree.ethosu.check import check_file, check_stream, is_payload
from racefree.ethosu.commands import Command, commands, unpack
from racefree.ethosu.operations import Dma, Range, Wait, operations
from racefree.verdict import Status

SRC_REGION, DST_REGION, SRC, DST, LEN = 0x130, 0x131, 0x030, 0x031, 0x032
START, DMA_WAIT, KERNEL_WAIT, STOP = 0x010, 0x011, 0x012, 0x000


def parameter(code: int, value: int) -> list[int]:
    return [code | value << 16]


def word(code: int, value: int) -> list[int]:
    return [code | 0x4000 | value >> 32 << 16, value & 0xFFFFFFFF]


def transfer(source: tuple[int, int], target: tuple[int, int], length: int) -> list[int]:
    return [
        *parameter(SRC_REGION, source[0]), *word(SRC, source[1]), *parameter(DST_REGION, target[0]), *word(DST, target[1]),
        *word(LEN, length), *parameter(START, 0),
    ]  # fmt: skip


def test_words_become_commands() -> None:
    stream = [
        *parameter(DST_REGION, 0x103),
        *word(SRC, (7 << 32) | 5),
        *parameter(KERNEL_WAIT, 1),
        *parameter(STOP, 0xFFFF),
        9,
    ]
    assert list(commands(stream)) == [
        Command(0, "DMA0_DST_REGION", 0x103),
        Command(1, "DMA0_SRC", (7 << 32) | 5),
        Command(3, "OP_KERNEL_WAIT", 1),
        Command(4, "OP_STOP", 0xFFFF),
    ]


def test_the_codes_are_those_of_the_wheel() -> None:
    registers = pytest.importorskip("ethosu.vela.ethos_u55_regs.ethos_u55_regs")
    known = {**reading._OPERATIONS, **reading._PARAMETERS}
    assert {one.value: one.name.replace("NPU_SET_", "").replace("NPU_", "") for one in registers.cmd0} == known
    assert {one.value: one.name.replace("NPU_SET_", "") for one in registers.cmd1} == reading._WORDS


def test_transfers_and_waits() -> None:
    stream = [*transfer((0, 16), (0x103, 32), 64), *parameter(DMA_WAIT, 0), *parameter(STOP, 0)]
    assert list(operations(commands(stream))) == [
        Dma(8, Range("region0", 16, 64), Range("shram", 32, 64)),
        Wait(9, dma=True, left=0),
    ]


@pytest.mark.parametrize(
    ("stream", "error", "message"),
    [
        ([0x3FF], Refused, "word 0: command code 0x03ff is not known"),
        ([0x8010], Refused, "command code 0x8010 is not known"),
        (word(SRC, 1)[:1], InputError, "word 0: the stream ends inside a command"),
        (parameter(START, 0), InputError, "word 0: OP_DMA_START runs before register DMA0_SRC_REGION is set"),
        (transfer((0, 0), (1, 0), 16)[:-1] + parameter(START, 3), Refused, "a transfer in mode 3"),
        (parameter(DMA_WAIT, 16), Refused, "waits on channel 1"),
        (parameter(0x002, 0), InputError, "word 0: OP_CONV runs before register"),
    ],
)
def test_streams_that_cannot_be_read(stream: Sequence[int], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as raised:
        list(operations(commands(stream)))
    assert message in str(raised.value)


def payload(stream: Sequence[int], config: int = 0x00180007) -> bytes:
    """Fourcc, configuration, padding, then the stream."""
    words = [0x31504F43, 1, config, 0, 5, 5, 5, 2 | len(stream) << 16, *stream]
    return struct.pack(f"<{len(words)}I", *words)


def test_a_payload_is_unpacked() -> None:
    stream = (*transfer((0, 0), (1, 0), 16), *parameter(STOP, 0))
    assert unpack(payload(stream)) == (stream, by_name("Ethos_U55_128"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"ELF!", "expected a driver payload"),
        (b"COP1", "holds no command stream"),
        (payload([0, 0])[:-4], "announces 2 command words and has 1"),
        (struct.pack("<3I", 0x31504F43, 2 | 1 << 16, 0), "does not say which accelerator"),
    ],
)
def test_payloads_that_cannot_be_read(data: bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        unpack(data)


def test_what_a_payload_may_not_hold() -> None:
    with pytest.raises(Refused, match="driver action 9"):
        unpack(struct.pack("<2I", 0x31504F43, 9))
    with pytest.raises(Refused, match="product 7"):
        by_config_word(7 << 28)
    with pytest.raises(Refused, match="1 MACs"):
        by_config_word(0)


@pytest.mark.parametrize("accelerator", ACCELERATORS, ids=lambda one: one.name)
def test_accelerators_are_those_of_vela(accelerator: object) -> None:
    features = pytest.importorskip("ethosu.vela.architecture_features")
    driver = pytest.importorskip("ethosu.vela.driver_actions")
    known = by_name(accelerator.name)  # type: ignore[attr-defined]
    arch = features.create_default_arch(features.Accelerator(known.name))
    assert (arch.config.macs, arch.ncores, arch.config.shram_banks) == (known.macs, known.cores, known.shram_banks)
    assert (arch.max_outstanding_dma, arch.max_outstanding_kernels) == (known.outstanding_dmas, 2)
    assert (arch.shram_lut_address, arch.ifm_ublock.depth) == (known.lut_start, known.input_channels)
    assert by_config_word(driver.build_config_word(arch)) == known


def test_an_unknown_accelerator() -> None:
    with pytest.raises(InputError, match="expected one of ethos-u55-32"):
        by_name("ethos-u99")


# ---- transfers in flight ---------------------------------------------------------------------------------------------

CHAIN = [*transfer((0, 0), (1, 0), 64), *transfer((1, 0), (2, 0), 64), *parameter(STOP, 0)]
"""The second transfer reads what the first one writes."""


@pytest.mark.parametrize(("name", "status"), [("ethos-u55-128", Status.OK), ("ethos-u65-256", Status.RACES)])
def test_transfers_overlap_only_where_two_can_be_running(name: str, status: Status) -> None:
    assert check_stream(CHAIN, name).status is status


def test_a_wait_orders_transfers() -> None:
    first = transfer((0, 0), (1, 0), 64)
    waited = [*first, *parameter(DMA_WAIT, 0), *CHAIN[len(first) :]]
    assert check_stream(waited, "ethos-u65-256").status is Status.OK


def test_a_payload_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "stream.bin"
    path.write_bytes(payload(CHAIN, config=0x10300008))
    assert is_payload(path.read_bytes()[:4])
    (race,) = check_file(path).orders[0].races
    assert (race.race_type, race.first.source, race.second.source) == ("RAW", (str(path), 8, ""), (str(path), 17, ""))
    with pytest.raises(InputError, match="No such file"):
        check_file(tmp_path / "missing.bin")


def test_what_is_not_known_makes_a_stream_unsupported(tmp_path: Path) -> None:
    found = check_stream([0x3FF], "ethos-u55-128")
    assert (found.status, [one.kind for one in found.refusals]) == (Status.UNSUPPORTED, ["unknown-command"])
    path = tmp_path / "stream.bin"
    path.write_bytes(payload(CHAIN, config=0x70000000))
    assert [one.kind for one in check_file(path).refusals] == ["accelerator"]
