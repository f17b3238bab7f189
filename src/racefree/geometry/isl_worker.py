"""Decides a reduced equation as the emptiness of an integer set, in a warm process that is killed when it takes too long.

isl cannot be interrupted from inside, and its operation limit is too coarse to bound one question; a process can be killed.
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

from racefree.geometry.equation import UNKNOWN, Unknown
from racefree.geometry.reduction import Term

ANSWER_SECONDS = 0.5
START_SECONDS = 10.0


class IslWorker:
    """One isl process, started at the first question and again after a kill. Safe to share between threads and forks."""

    def __init__(self, *, answer_seconds: float = ANSWER_SECONDS) -> None:
        self._answer_seconds = answer_seconds
        self._process: subprocess.Popen[str] | None = None
        self._owner = 0
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._asked = 0
        self._broken = False
        self._lock = threading.Lock()

    def solve(self, terms: tuple[Term, ...], target: int) -> list[int] | Unknown | None:
        """Values that sum to `target`, None when there are none, UNKNOWN when isl did not answer in time or is missing."""
        with self._lock:
            if self._broken or not self._ready():
                return UNKNOWN
            self._asked += 1
            request = {
                "id": self._asked,
                "steps": [term.step for term in terms],
                "bounds": [term.bound for term in terms],
                "target": target,
            }
            return self._ask(request)

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

    def _ask(self, request: dict[str, object]) -> list[int] | Unknown | None:
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            answer = json.loads(self._lines.get(timeout=self._answer_seconds))
        except (OSError, ValueError, queue.Empty):
            self.close()
            return UNKNOWN
        if not isinstance(answer, dict) or answer.get("id") != request["id"] or "values" not in answer:
            self.close()
            return UNKNOWN
        values = answer["values"]
        return None if values is None else [int(value) for value in values]

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


_SHARED = IslWorker()
atexit.register(_SHARED.close)


def isl_solve(terms: tuple[Term, ...], target: int) -> list[int] | Unknown | None:
    """Ask the shared worker."""
    return _SHARED.solve(terms, target)
