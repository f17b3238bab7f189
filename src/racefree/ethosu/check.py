"""Checks command streams: driver payloads from files, or words with the accelerator they are for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from racefree.engines.check import DEPENDENCIES, Options, check
from racefree.engines.records import EngineVerdict, OrderVerdict
from racefree.errors import InputError, Refused
from racefree.ethosu.accelerators import Accelerator, by_name
from racefree.ethosu.commands import MAGIC, unpack
from racefree.ethosu.lowering import lower
from racefree.verdict import Status

PIPELINE_IN_ORDER = "assumes that kernels read, make and write their blocks in order"
REGIONS_APART = "assumes that the memory regions of a stream do not overlap"


def is_payload(head: bytes) -> bool:
    """Whether a file that starts so is a driver payload."""
    return head.startswith(MAGIC)


def check_stream(
    words: Sequence[int], accelerator: Accelerator | str, *, name: str = "stream", options: Options | None = None
) -> EngineVerdict:
    """The verdict on the words of a stream: `unsupported` when it holds what is not known here.

    Raises InputError for an unknown accelerator, and for a stream that is cut off or runs before its registers are set.
    """
    target = by_name(accelerator) if isinstance(accelerator, str) else accelerator
    try:
        program = lower(words, target, name=name)
    except Refused as refused:
        return _unsupported(name, refused)
    return check(program, order=DEPENDENCIES, options=options)


def check_file(path: str | Path, *, options: Options | None = None) -> EngineVerdict:
    """The verdict on a driver payload in a file. Raises InputError when it cannot be read."""
    try:
        payload = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    try:
        words, accelerator = unpack(payload)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except Refused as refused:
        return _unsupported(str(path), refused)
    return check_stream(words, accelerator, name=str(path), options=options)


def _unsupported(name: str, refused: Refused) -> EngineVerdict:
    order = OrderVerdict(DEPENDENCIES, Status.UNSUPPORTED, refusals=(refused.refusal,))
    return EngineVerdict(name, Status.UNSUPPORTED, (order,))
