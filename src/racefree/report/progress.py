"""Says how far a long run has come: a line that moves on a terminal while a launch is analysed, plain lines elsewhere."""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TextIO

from racefree.launch import Launch

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

SECONDS_BETWEEN_LINES = 10.0
"""Where nobody watches, a quick run stays quiet and a long one says this often where it is."""

_SECONDS_BETWEEN_DRAWINGS = 0.1


class Progress(Protocol):
    """Hears when the analysis of something begins and of each launch that was analysed, from any thread."""

    def began(self, name: str) -> None: ...

    def analysed(self, launch: Launch) -> None: ...

    def close(self) -> None: ...


@dataclass(slots=True)
class _Tally:
    """What has been analysed, and what is being analysed now."""

    launches: int = 0
    racing: int = 0
    current: str = ""
    since: float = field(default_factory=time.monotonic)

    def begin(self, name: str) -> None:
        self.current, self.since = name, time.monotonic()

    def end(self, launch: Launch) -> None:
        self.launches += 1
        self.racing += bool(launch.races)
        self.current, self.since = "", time.monotonic()

    def __str__(self) -> str:
        counted = f"{self.launches} launches analysed, {self.racing} racing"
        if not self.current:
            return counted
        seconds = int(time.monotonic() - self.since)
        return f"{counted}, now {self.current}" + (f" for {seconds} s" if seconds else "")


@dataclass(slots=True)
class PlainProgress:
    """Lines on `stream`, at most one in `seconds`, and none in a run shorter than that."""

    stream: TextIO
    seconds: float = SECONDS_BETWEEN_LINES
    _tally: _Tally = field(default_factory=_Tally)
    _last: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def began(self, name: str) -> None:
        with self._lock:
            self._tally.begin(name)
            if time.monotonic() - self._last >= self.seconds:
                self._last = time.monotonic()
                self.stream.write(f"racefree: {self._tally}\n")
                self.stream.flush()

    def analysed(self, launch: Launch) -> None:
        with self._lock:
            self._tally.end(launch)

    def close(self) -> None:
        pass


@dataclass(slots=True)
class LiveProgress:
    """A line with a spinner on a terminal, there only while an analysis runs: what the script prints never meets it."""

    stream: TextIO
    _tally: _Tally = field(default_factory=_Tally)
    _console: Console | None = None
    _live: Live | None = None
    _running: int = 0
    _last: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def began(self, name: str) -> None:
        with self._lock:
            self._tally.begin(name)
            self._running += 1
            if self._running == 1 and time.monotonic() - self._last >= _SECONDS_BETWEEN_DRAWINGS:
                self._live = self._drawing()
                self._live.start(refresh=True)

    def analysed(self, launch: Launch) -> None:
        with self._lock:
            self._tally.end(launch)
            self._running = max(0, self._running - 1)
            if not self._running:
                self._erase()

    def close(self) -> None:
        with self._lock:
            self._erase()

    def _erase(self) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()
            self._last = time.monotonic()

    def _drawing(self) -> Live:
        from rich.console import Console
        from rich.live import Live

        if self._console is None:
            self._console = Console(file=self.stream)
        return Live(
            get_renderable=self._line,
            console=self._console,
            transient=True,
            refresh_per_second=5,
            redirect_stdout=False,
            redirect_stderr=False,
        )

    def _line(self) -> Text:
        from rich.text import Text

        turning = "|/-\\"[int(time.monotonic() * 5) % 4]
        return Text(f"{turning} {self._tally}", no_wrap=True, overflow="ellipsis")


def progress(stream: TextIO) -> Progress:
    """How to tell the progress on `stream`: live on a terminal that can move its cursor."""
    live = stream.isatty() and os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return LiveProgress(stream) if live else PlainProgress(stream)
