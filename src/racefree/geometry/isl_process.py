"""A warm isl process that answers one question at a time, and is killed when it takes too long.

isl cannot be interrupted from inside. Its own operation limit ends most questions at the same point every time, but not those
that it cannot count; those end with the process.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

START_SECONDS = 30.0


class IslProcess:
    """Started at the first question and again after a kill. Safe to share between threads and forks."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._owner = 0
        self._asked = 0
        self._broken = False
        self._lock = threading.Lock()

    def ask(self, question: dict[str, Any], *, seconds: float) -> dict[str, Any] | None:
        """The answer of `isl_server.answer`; None when there was none within `seconds`, or isl is missing."""
        with self._lock:
            if self._broken or not self._ready():
                return None
            try:
                return self._answer(question, seconds)
            except BaseException:  # stopped from the keyboard: the answer that comes later must meet no other question
                self.close()
                raise

    def close(self) -> None:
        """Kill the process, if this one started it."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                stream.close()

    @property
    def pid(self) -> int | None:
        """The process id, None while none runs."""
        return None if self._process is None else self._process.pid

    def _answer(self, question: dict[str, Any], seconds: float) -> dict[str, Any] | None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._asked += 1
        try:
            self._process.stdin.write(json.dumps({"id": self._asked, **question}) + "\n")
            self._process.stdin.flush()
            reply = json.loads(self._lines.get(timeout=seconds))
        except (OSError, ValueError, queue.Empty):
            self.close()
            return None
        if not isinstance(reply, dict) or reply.get("id") != self._asked:
            self.close()
            return None
        answer = reply.get("answer")
        return answer if isinstance(answer, dict) else None

    def _ready(self) -> bool:
        if self._process is not None and self._owner == os.getpid():
            return True
        # A process inherited through a fork answers its first owner; leave it alone and start one of our own.
        self._process, self._lines, self._owner = None, queue.SimpleQueue(), os.getpid()
        script = Path(__file__).with_name("isl_server.py")
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", str(script)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                start_new_session=True,
            )
            threading.Thread(target=_pump, args=(self._process, self._lines), daemon=True).start()
            started = self._lines.get(timeout=START_SECONDS) == "ready\n"
        except (OSError, queue.Empty):
            started = False
        if not started:
            self._broken = True
            self.close()
        return started


def _pump(process: subprocess.Popen[str], lines: queue.SimpleQueue[str]) -> None:
    assert process.stdout is not None
    try:
        for line in process.stdout:
            lines.put(line)
    except ValueError:
        return  # closed while reading
    finally:
        lines.put("")


SHARED = IslProcess()
atexit.register(SHARED.close)
