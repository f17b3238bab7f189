"""What `racefree check` accepts: each kind of input is recognised by its content and read by a module of its own.

A kind of input is added by one entry of `FRONT_ENDS`. Its module is loaded only when an input of that kind is met; its
`check(request, found)` puts what it finds into `found` as it goes, so that an interrupted run still has something to show.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from racefree.config import Settings
from racefree.errors import InputError
from racefree.launch import Launch, Pictures
from racefree.report.model import Report, Script, Subject
from racefree.report.progress import Progress

HEAD_BYTES = 4096
"""How much of a file a front end sees to recognise it."""


@dataclass(frozen=True, slots=True)
class Request:
    """One input and how to check it.

    `arguments` belong to a script, `grid`, `given` (`NAME=VALUE`) and `num_warps` to a bare module, `order`, `all_races`,
    `queues` (a `QueueOrder`) and `compiler_exemptions` to an engine program.
    `draws` says of which launches pictures are taken. `replays` is of how many program instances a verdict is checked
    by running them in Triton's interpreter, None for no such check.
    """

    path: Path
    settings: Settings
    arguments: tuple[str, ...] = ()
    grid: tuple[int, int, int] | None = None
    given: tuple[str, ...] = ()
    save_to: Path | None = None
    num_warps: int | None = None
    order: str = "both"
    all_races: bool = True
    queues: str = "ignored"
    compiler_exemptions: bool = False
    draws: Pictures = "nothing"
    replays: int | None = None


@dataclass(slots=True)
class Found:
    """What a run has found so far. `progress` hears what is being analysed."""

    launches: list[Launch] = field(default_factory=list)
    subjects: list[Subject] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    tracebacks: list[str] = field(default_factory=list)
    script: Script | None = None
    interrupted: bool = False
    progress: Progress | None = None
    root: str = field(default_factory=os.getcwd)

    def begin(self, name: str) -> None:
        """Says that the analysis of a launch (or of anything else with this name) begins."""
        if self.progress is not None:
            self.progress.began(name)

    def add(self, launch: Launch) -> None:
        self.launches.append(launch)
        if self.progress is not None:
            self.progress.analysed(launch)

    def report(self, *, seconds: float = 0.0) -> Report:
        from racefree.report.allowances import stale_comments
        from racefree.report.build import launch_subjects, of_subjects

        subjects = (*launch_subjects(self.launches), *self.subjects)
        report = of_subjects(subjects, script=self.script, notes=self.notes, seconds=seconds, root=self.root)
        return replace(report, notes=(*report.notes, *stale_comments(report)))


Check = Callable[[Request, Found], None]
CheckTogether = Callable[[Sequence[Request], Found], None]


@dataclass(frozen=True, slots=True)
class FrontEnd:
    """`recognises(path, head)` sees the first bytes of the file; `module` has the function `check(request, found)`.

    `options` are those of `racefree check` that concern only some kinds of input, and this one among them.
    What follows the input on the command line belongs to the input if it `takes_arguments`, else it is options of ours.
    The files of a front end that looks at them `together` go to one call, `check(requests, found)`.
    """

    name: str
    recognises: Callable[[Path, bytes], bool]
    module: str
    options: frozenset[str] = frozenset()
    takes_arguments: bool = False
    together: bool = False

    def load(self) -> CheckTogether:
        """A function that checks requests of this kind: all of them in one call, or one call each."""
        check = import_module(self.module).check
        if self.together:
            return check  # type: ignore[no-any-return]

        def one_by_one(requests: Sequence[Request], found: Found) -> None:
            each: Check = check
            for request in requests:
                each(request, found)

        return one_by_one


def is_json(head: bytes) -> bool:
    """True when the first bytes may begin a JSON object or array."""
    return head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"{", b"["))


def _is_saved_launch(_path: Path, head: bytes) -> bool:
    return is_json(head) and b"racefree-launch" in head


def _is_engine_program(path: Path, head: bytes) -> bool:
    """BIR documents as JSON, or as CBOR; what is called JSON is never run as a script."""
    return b"racefree-" not in head[:200] if is_json(head) else path.suffix in (".cbor", ".json")


def _is_command_stream(_path: Path, head: bytes) -> bool:
    """Driver payloads of Ethos-U."""
    return head.startswith(b"COP1")


def _is_ttir(path: Path, head: bytes) -> bool:
    return path.suffix in (".ttir", ".mlir") or any(
        line.lstrip().startswith((b"module", b'"builtin.module"'))
        for line in head.splitlines()
        if line[:1] not in b"#!/"
    )


def _is_script(path: Path, head: bytes) -> bool:
    return path.suffix in (".py", ".pyw") or (not is_json(head) and b"\0" not in head)


_PROOFS = frozenset(("lanes", "scope", "budget"))
_COMPILES = _PROOFS | {"target"}
_MODULE = _COMPILES | {"grid", "given", "num_warps"}
_SCRIPT = _COMPILES | {"save_to"}
_STREAM = frozenset(("all_races", "queues"))
_ENGINES = _STREAM | {"order", "compiler_exemptions"}

FRONT_ENDS = (
    FrontEnd("saved launch", _is_saved_launch, "racefree.frontends.saved", _PROOFS, together=True),
    FrontEnd("engine program", _is_engine_program, "racefree.frontends.engine", _ENGINES, together=True),
    FrontEnd("command stream", _is_command_stream, "racefree.frontends.command_stream", _STREAM),
    FrontEnd("TTIR module", _is_ttir, "racefree.frontends.module", _MODULE),
    FrontEnd("Python script", _is_script, "racefree.frontends.script", _SCRIPT, takes_arguments=True),
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
    raise InputError(f"{path} is none of: {', '.join(each.name for each in FRONT_ENDS)}")


def inputs(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The files to check: the paths themselves, and the JSON and CBOR files anywhere in those that are folders, sorted."""
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        inside = sorted(p for p in path.rglob("*") if p.suffix in (".json", ".cbor") and p.is_file())
        if not inside:
            raise InputError(f"{path} holds no saved launches and no engine programs (*.json)")
        found += inside
    return tuple(dict.fromkeys(found))
