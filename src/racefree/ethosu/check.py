"""Checks command streams: driver payloads from files, or words with the accelerator they are for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from racefree.engines.check import DEPENDENCIES, Options, check
from racefree.engines.records import EngineVerdict
from racefree.errors import InputError
from racefree.ethosu.accelerators import Accelerator, by_name
from racefree.ethosu.commands import MAGIC, unpack
from racefree.ethosu.lowering import lower

REGIONS_APART = "assumes that the memory regions of a stream do not overlap"


def is_payload(head: bytes) -> bool:
    """Whether a file that starts so is a driver payload."""
    return head.startswith(MAGIC)


def check_stream(
    words: Sequence[int], accelerator: Accelerator | str, *, name: str = "stream", options: Options | None = None
) -> EngineVerdict:
    """The verdict on the words of a stream. Raises InputError or Refused when the stream cannot be read."""
    target = by_name(accelerator) if isinstance(accelerator, str) else accelerator
    return check(lower(words, target, name=name), order=DEPENDENCIES, options=options)


def check_file(path: str | Path, *, options: Options | None = None) -> EngineVerdict:
    """The verdict on a driver payload in a file."""
    try:
        payload = Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    words, accelerator = unpack(payload)
    return check_stream(words, accelerator, name=str(path), options=options)
