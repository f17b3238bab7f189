"""Runs a function in a forked child, which may crash, hang or change its process for good without harm to this one."""

from __future__ import annotations

import os
import pickle
import select
import signal
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

_CHUNK = 1 << 16
_LENGTH_BYTES = 8


@dataclass(frozen=True, slots=True)
class Failed:
    """Why there is no result: the child was too slow, was killed by a signal, or raised what it should not have."""

    reason: str
    traceback: str = ""


def in_fork(work: Callable[[], Any], *, seconds: float) -> Any:
    """The result of `work`, which must survive pickling, or `Failed`. The child sees everything this process holds."""
    if not hasattr(os, "fork"):
        return Failed("this system cannot fork a process")
    read_end, write_end = os.pipe()
    with warnings.catch_warnings():
        # Python warns of forks beside threads: a lock that one of them held stays held. The time limit answers for that.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        os.close(read_end)
        _in_child(work, write_end)
    os.close(write_end)
    ended = False
    try:
        data = _read(read_end, time.monotonic() + seconds)
        ended = data is not None
    finally:
        os.close(read_end)
        if not ended:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if data is None:
        return Failed(f"it did not end within {seconds:g} seconds")
    if not data:
        code = os.waitstatus_to_exitcode(status)
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"status {code}"
        return Failed(f"its process ended with {how}")
    return pickle.loads(data)


def _in_child(work: Callable[[], Any], write_end: int) -> NoReturn:
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent, which hears of Ctrl-C too, ends this process
        silence = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(silence, stream)
        try:
            found = work()
        except BaseException as error:
            found = Failed(f"{type(error).__name__}: {error}", traceback.format_exc())
        data = pickle.dumps(found)
        with os.fdopen(write_end, "wb") as file:
            file.write(len(data).to_bytes(_LENGTH_BYTES) + data)
    finally:
        os._exit(0)


def _read(read_end: int, deadline: float) -> bytes | None:
    """What the child wrote, b"" if it ended before, None when that takes too long."""
    got = b""
    while len(got) < _LENGTH_BYTES or len(got) < _LENGTH_BYTES + int.from_bytes(got[:_LENGTH_BYTES]):
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([read_end], [], [], left)[0]:
            return None
        part = os.read(read_end, _CHUNK)
        if not part:
            return b""
        got += part
    return got[_LENGTH_BYTES:]
