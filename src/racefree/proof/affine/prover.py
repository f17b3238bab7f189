"""Asks a warm isl process whether sets are empty, and kills it when it takes too long.

isl cannot be interrupted from inside, and its operation limit is too coarse to bound one question; a process can be killed.
"""

from __future__ import annotations

import atexit
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from racefree.proof.affine.text import NotLinear, set_text
from racefree.proof.symbolic.terms import Condition

ANSWER_SECONDS = 0.5
START_SECONDS = 10.0


class SetProver:
    """One isl process, started at the first question and again after a kill. Safe to share between threads and forks."""

    def __init__(self, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._answer_seconds = answer_seconds
        self._process: subprocess.Popen[str] | None = None
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._owner = 0
        self._asked = 0
        self._broken = False
        self._lock = threading.Lock()

    def never(self, conditions: Sequence[Condition], *, seconds: float = 60.0) -> bool:
        """True when the conditions cannot hold together; false when they can, or when that was not decided.

        `seconds` caps the answer time from above; spent budgets ask nothing.
        """
        if seconds <= 0:
            return False
        try:
            text = set_text(conditions)
        except NotLinear:
            return False
        with self._lock:
            return self._ask(text, min(seconds, self._answer_seconds)) == "empty"

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

    def _ask(self, text: str, seconds: float) -> str:
        if self._broken or not self._ready():
            return "error"
        assert self._process is not None
        assert self._process.stdin is not None
        self._asked += 1
        try:
            self._process.stdin.write(f"{self._asked} {text}\n")
            self._process.stdin.flush()
            number, _, answer = self._lines.get(timeout=seconds).strip().partition(" ")
        except (OSError, ValueError, queue.Empty):
            self.close()
            return "error"
        except BaseException:  # stopped from the keyboard: the answer that comes later must meet no other question
            self.close()
            raise
        if number != str(self._asked):
            self.close()
            return "error"
        return answer

    def _ready(self) -> bool:
        if self._process is not None and self._owner == os.getpid():
            return True
        # A process inherited through a fork answers its first owner; leave it alone and start one of our own.
        self._process, self._lines, self._owner = None, queue.SimpleQueue(), os.getpid()
        script = Path(__file__).with_name("server.py")
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


SHARED = SetProver()
atexit.register(SHARED.close)
