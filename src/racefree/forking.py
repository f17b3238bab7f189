"""Locks that a fork waits for, so that no child begins with one of them held by a thread that it does not have."""

from __future__ import annotations

import os
import threading
import weakref
from enum import IntEnum


class Rank(IntEnum):
    """In which order a fork takes the locks: who holds one never waits for an earlier one."""

    COMPILING = 1
    TAKING = 2
    CONTENTS = 3
    ANALYSING = 4


_known: list[tuple[Rank, weakref.ref[threading.RLock]]] = []
_held: list[threading.RLock] = []


def guarded(rank: Rank) -> threading.RLock:
    """A re-entrant lock that is free in every forked child, along with what it guards."""
    lock = threading.RLock()
    _known[:] = [(other, ref) for other, ref in _known if ref() is not None]
    _known.append((rank, weakref.ref(lock)))
    return lock


def _before() -> None:
    for _, ref in sorted(_known, key=lambda known: known[0]):
        lock = ref()
        if lock is not None:
            lock.acquire()
            _held.append(lock)


def _after() -> None:
    while _held:
        _held.pop().release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_after)
