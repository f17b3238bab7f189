"""Results that come in any order and are handed on in the order in which they were begun."""

from __future__ import annotations

import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from racefree.launch import Launch

_SECONDS_BETWEEN_LOOKS = 1.0
"""A thread that ends without leaving its place (in the parent of a forked process) wakes nobody."""


@dataclass(slots=True, eq=False)
class Place:
    """Keeps the place of a launch whose analysis has begun. `filled_with` is what is known of it so far."""

    filled_with: Launch | None = None
    left: bool = False
    thread: threading.Thread = field(default_factory=threading.current_thread)


class InOrder:
    """Hands launches to `add`, one at a time."""

    def __init__(self, add: Callable[[Launch], None]) -> None:
        self._add = add
        self._places: deque[Place] = deque()
        self._lock = threading.Condition()

    @contextmanager
    def place(self) -> Iterator[Place]:
        """A place to be filled inside the block; whatever fills it when the block is left is handed on in its turn.

        An interrupt that another thread meets in a query is the main one's to report; the thread ends without a word.
        """
        place = Place()
        with self._lock:
            self._places.append(place)
        try:
            yield place
        except KeyboardInterrupt:
            if threading.current_thread() is threading.main_thread():
                raise
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
            raise SystemExit from None
        finally:
            place.left = True
            self._hand_on()

    def settle(self) -> None:
        """Waits for what has begun, in threads that are alive, and hands it on."""
        with self._lock:
            begun = list(self._places)
            while any(not place.left and place.thread.is_alive() for place in begun):
                self._lock.wait(_SECONDS_BETWEEN_LOOKS)
            for place in begun:
                place.left = True
        self._hand_on()

    def close(self) -> None:
        """Hands on what is there, without waiting for what is still being analysed."""
        with self._lock:
            for place in self._places:
                place.left = True
        self._hand_on()

    def _hand_on(self) -> None:
        with self._lock:
            while self._places and self._places[0].left:
                place = self._places.popleft()
                if place.filled_with is not None:
                    self._add(place.filled_with)
                    place.filled_with = None
            self._lock.notify_all()
