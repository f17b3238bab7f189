"""What `racefree check` accepts: each kind of input is recognised by its content and read by a module of its own.

A kind of input is added by one entry of `FRONT_ENDS`. Its module is loaded only when an input of that kind is met; its
`check(request, found)` puts what it finds into `found` as it goes, so that an interrupted run still has something to show.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from racefree.config import Settings
from racefree.errors import InputError
from racefree.launch import Launch
from racefree.report.model import Report, Script, Subject

HEAD_BYTES = 4096
"""How much of a file a front end sees to recognise it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One input and how to check it. `arguments` belong to a script, `grid` and `given` (`NAME=VALUE`) to a bare module."""

    path: Path
    settings: Settings
    arguments: tuple[str, ...] = ()
    grid: tuple[int, int, int] | None = None
    given: tuple[str, ...] = ()
    save_to: Path | None = None


@dataclass(slots=True)
class Found:
    """What a run has found so far. `on_launch` is called after each launch, for a progress line."""

    launches: list[Launch] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    script: Script | None = None
    interrupted: bool = False
    on_launch: Callable[[Launch], None] | None = None

    def add(self, launch: Launch) -> None:
        self.launches.append(launch)
        if self.on_launch is not None:
            self.on_launch(launch)

    def report(self, *, seconds: float = 0.0) -> Report:
        from racefree.report.build import launch_subjects, of_subjects

        subjects = (*launch_subjects(self.launches), *self.subjects)
        return of_subjects(subjects, script=self.script, notes=self.notes, seconds=seconds)


Check = Callable[[Request, Found], None]


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """`recognises(path, head)` sees the first bytes of the file; `module` has the function `check(request, found)`.

    What follows the input on the command line belongs to the input if it `takes_arguments`, else it is options of ours.
    """

    name: str
    recognises: Callable[[Path, bytes], bool]
    module: str
    takes_arguments: bool = False

    def load(self) -> Check:
        check: Check = import_module(self.module).check
        return check


def is_json(head: bytes) -> bool:
    """True when the first bytes may begin a JSON object or array."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))


def _is_saved_launch(_path: Path, head: bytes) -> bool:
    return is_json(head) and b"racefree-launch" in head


def _is_ttir(path: Path, head: bytes) -> bool:
    return path.suffix in (".ttir", ".mlir") or any(
        line.lstrip().startswith((b"module", b'"builtin.module"'))
        for line in head.splitlines()
        if line[:1] not in b"#!/"
    )


def _is_script(path: Path, head: bytes) -> bool:
    return path.suffix in (".py", ".pyw") or (not is_json(head) and b"\0" not in head)


FRONT_ENDS = (
    FrontEnd("saved launch", _is_saved_launch, "racefree.frontends.saved"),
    FrontEnd("TTIR module", _is_ttir, "racefree.frontends.module"),
    FrontEnd("Python script", _is_script, "racefree.frontends.script", takes_arguments=True),
)


def front_end(path: Path) -> FrontEnd:
    """The front end for a file. Raises InputError when it cannot be read or none knows it."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from error
    for candidate in FRONT_ENDS:
        if candidate.recognises(path, head):
            return candidate
    raise InputError(f"{path} is none of: {', '.join(each.name for each in FRONT_ENDS)}{_json_doubt(path, head)}")


def _json_doubt(path: Path, head: bytes) -> str:
    """For a JSON file that nobody knows: whether it is even JSON."""
    if not is_json(head):
        return ""
    try:
        json.loads(path.read_bytes())
    except ValueError as error:
        return f" (and it is damaged JSON: {error})"
    return ""


def inputs(path: Path) -> tuple[Path, ...]:
    """The files to check: the path itself, or the JSON files directly in a folder, sorted by name."""
    if not path.is_dir():
        return (path,)
    found = tuple(sorted(p for p in path.iterdir() if p.suffix == ".json" and p.is_file()))
    if not found:
        raise InputError(f"{path} holds no saved launches (*.json)")
    return found
