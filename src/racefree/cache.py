"""Proofs kept on disk, so that a launch that was proved before need not be proved again."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from racefree.errors import InputError
from racefree.report.json_format import plain_data, structured
from racefree.verdict import Status
from racefree.workers.question import Answer

FILE = "proofs.sqlite"
KEPT_DAYS = 30
"""So long a proof is believed. Then it is made anew, and the file does not grow without end."""

_PROVERS = ("z3-solver", "islpy", "numba", "numpy", "tree-sitter", "tree-sitter-mlir")
_WAIT_SECONDS = 30.0
_SECONDS_A_DAY = 86400.0


@dataclass(frozen=True, slots=True)
class Cache:
    """A file of proofs that any number of processes may share.

    Only answers of status `ok` are kept: races are found, and re-checked, each time. A proof is found again by whoever asks
    the same question with the same racefree, the same solvers and the same Python. What goes wrong with an opened cache, from
    a full disk to a damaged row, costs a proof made anew and nothing else.
    """

    path: Path

    @staticmethod
    def opened(folder: Path) -> Cache:
        """The cache in a folder, which is made if missing. Raises InputError when it cannot be used."""
        made = Cache(folder / FILE)
        try:
            if not folder.exists():
                folder.mkdir(parents=True)
                (folder / ".gitignore").write_text("*\n", encoding="utf-8")
            with made._connected() as connection:
                connection.execute("CREATE TABLE IF NOT EXISTS proofs (key BLOB PRIMARY KEY, day REAL, answer TEXT)")
                connection.execute("DELETE FROM proofs WHERE day < ?", (_today() - KEPT_DAYS,))
        except OSError as error:
            raise InputError(f"cannot keep proofs in {folder}: {error.strerror or error}") from error
        except sqlite3.Error as error:
            raise InputError(f"{made.path} cannot be used to keep proofs: {error}; delete it") from error
        return made

    def answers(self, keys: Iterable[bytes]) -> dict[bytes, Answer]:
        """What is known of the questions with these keys. An answer took no seconds."""
        found: dict[bytes, Answer] = {}
        try:
            with self._connected() as connection:
                for key in keys:
                    row = connection.execute("SELECT answer FROM proofs WHERE key = ?", (_own(key),)).fetchone()
                    answer = None if row is None else _read(row[0])
                    if answer is not None:
                        found[key] = answer
        except sqlite3.Error:
            return {}
        return found

    def keep(self, key: bytes, answer: Answer) -> None:
        """Keeps the answer if it is a proof that reads back as it was."""
        if answer.verdict.status is not Status.OK:
            return
        timeless = replace(answer, verdict=replace(answer.verdict, seconds=0.0))
        text = json.dumps(plain_data(timeless))
        if _read(text) != timeless:
            return
        try:
            with self._connected() as connection:
                connection.execute("INSERT OR REPLACE INTO proofs VALUES (?, ?, ?)", (_own(key), _today(), text))
        except sqlite3.Error:
            return

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """A transaction on a connection of its own: neither threads nor forked processes may share one."""
        with closing(sqlite3.connect(self.path, timeout=_WAIT_SECONDS)) as connection, connection:
            yield connection


def _today() -> float:
    return time.time() / _SECONDS_A_DAY


def _read(text: object) -> Answer | None:
    try:
        answer: Answer = structured(json.loads(str(text)), Answer)
    except Exception:  # whatever a damaged row makes of the structure
        return None
    return answer if answer.verdict.status is Status.OK else None


def _own(key: bytes) -> bytes:
    return hashlib.blake2b(_prover() + key, digest_size=32).digest()


@cache
def _prover() -> bytes:
    """Stands for whatever an answer depends on beside its question: our own sources, the solvers, and Python."""
    digest = hashlib.blake2b(repr((sys.version_info[:3], [_version(name) for name in _PROVERS])).encode())
    root = Path(__file__).parent
    for path in sorted(root.rglob("*.py")):
        source = path.read_bytes()
        digest.update(f"{path.relative_to(root)}:{len(source)}:".encode() + source)
    return digest.digest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
