"""Launches made in forked children of a script reach the report of the parent through files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from racefree.errors import InputError
from racefree.frontends import Found
from racefree.launch import Launch
from racefree.session import load, save


@dataclass(slots=True)
class Spool:
    """A folder in which a child writes each launch as it is decided; the parent reads them when the script has ended."""

    folder: Path
    owner: int = field(default_factory=os.getpid)
    _numbers: Iterator[int] = field(default_factory=count)

    @property
    def in_owner(self) -> bool:
        """True in the process that runs the script, false in its forked children."""
        return os.getpid() == self.owner

    def write(self, launch: Launch) -> None:
        name = f"{os.getpid()}-{next(self._numbers):08}"
        save(self.folder / f"{name}.part", [launch])
        (self.folder / f"{name}.part").rename(self.folder / f"{name}.json")


@contextmanager
def spooling(found: Found) -> Iterator[Spool]:
    """Inside the block children may write; after it, in the owner, what they wrote is added to `found`."""
    spool = Spool(Path(tempfile.mkdtemp(prefix="racefree-")))
    try:
        yield spool
    finally:
        if spool.in_owner:
            _collect(spool, found)
            shutil.rmtree(spool.folder, ignore_errors=True)


def _collect(spool: Spool, found: Found) -> None:
    children = set()
    for path in sorted(spool.folder.glob("*.json")):
        children.add(path.name.partition("-")[0])
        try:
            for launch in load(path):
                found.add(launch)
        except InputError as error:
            found.notes.append(f"a launch of a forked child could not be read: {error}")
    unfinished = len(list(spool.folder.glob("*.part")))
    if unfinished:
        found.notes.append(f"{unfinished} launches of forked children were still being written when the script ended")
