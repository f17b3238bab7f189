"""Checks BIR files: every function of every file, and the cores of a logical core against each other."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from racefree.engines.check import BOTH, DEPENDENCIES, SEMAPHORES, Options, check
from racefree.engines.order import QueueOrder
from racefree.engines.records import EngineVerdict
from racefree.errors import InputError
from racefree.neuron.document import Module
from racefree.neuron.legality import Violation, verify_split
from racefree.neuron.lnc import CoreVerdict, check_cores
from racefree.neuron.lowering import lower_all
from racefree.neuron.reading import load
from racefree.verdict import Status

ENGINE_IN_ORDER = "assumes that an engine finishes each instruction before the next one starts"
EXTERNALS_APART = "assumes that external tensors do not share memory"

FUNCTIONS_APART = "assumes that functions do not run at the same time"

_CORE_FOLDER = re.compile(r"^nc\d+$")


@dataclass(frozen=True, slots=True)
class FileVerdict:
    """The verdict on one file, one program a function. `core` is the module's core id."""

    path: str
    core: int | None
    programs: tuple[EngineVerdict, ...]


@dataclass(frozen=True, slots=True)
class CoresVerdict:
    """The verdict on the files of one logical core together; nothing is claimed about an illegal one."""

    paths: tuple[str, ...]
    functions: tuple[CoreVerdict, ...]
    violations: tuple[Violation, ...] = ()

    @property
    def status(self) -> Status:
        statuses = {one.status for one in self.functions}
        if Status.RACES in statuses:
            return Status.RACES
        return Status.UNSUPPORTED if self.violations or Status.UNSUPPORTED in statuses else Status.OK


@dataclass(frozen=True, slots=True)
class FilesVerdict:
    """Everything one run over BIR files found. `assumptions` hold for every `ok`; `unread` says what could not be read."""

    files: tuple[FileVerdict, ...]
    cores: tuple[CoresVerdict, ...]
    assumptions: tuple[str, ...]
    unread: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def status(self) -> Status:
        """The worst status of all: races, then unsupported, then ok. No program at all is vacuous."""
        found = [program.status for one in self.files for program in one.programs] + [one.status for one in self.cores]
        for status in (Status.RACES, Status.UNSUPPORTED, Status.VACUOUS):
            if status in found:
                return status
        return Status.OK if found else Status.VACUOUS


def check_files(
    paths: Iterable[str | Path],
    *,
    order: str = BOTH,
    all_races: bool = True,
    compiler_exemptions: bool = False,
    queue_order: QueueOrder = QueueOrder.IGNORED,
    limit: int = 100,
    keep_going: bool = False,
) -> FilesVerdict:
    """Checks files, one core each, and those that form a logical core against each other.

    `order` is "dependencies", "semaphores" or "both". `all_races` off stops each program at its first race; `limit` bounds
    the races spelled out. `compiler_exemptions` gives the compiler's own answer instead: its rules, its blind spots, one
    block at a time, by dependencies. Files form a logical core when they differ in core id and agree on their functions,
    and stand in sibling folders `nc00`, `nc01`, ... or in one folder. Raises InputError for a file that cannot be read,
    unless `keep_going`: then the others are still checked.
    """
    began = time.monotonic()
    options = Options(queue_order=queue_order, first_only=not all_races, limit=limit)
    files: list[FileVerdict] = []
    seen: list[CoreFile] = []
    unread: list[str] = []
    for path in paths:
        # One document at a time: those of a logical core are read again together.
        try:
            module = load(path)
            files.append(_file(str(path), module, order, options, compiler_exemptions))
        except InputError as error:
            if not keep_going:
                raise
            unread.append(str(error))
            continue
        seen.append(CoreFile(Path(path), module.core, frozenset(function.name for function in module.functions)))
    cores = tuple(_cores(group, order, compiler_rules=compiler_exemptions) for group in logical_cores(seen))
    assumptions: tuple[str, ...] = (ENGINE_IN_ORDER, EXTERNALS_APART)
    if any(len(one.functions) > 1 for one in seen):
        assumptions = (*assumptions, FUNCTIONS_APART)
    return FilesVerdict(tuple(files), cores, assumptions, tuple(unread), seconds=time.monotonic() - began)


def check_module(
    module: Module, *, order: str = BOTH, options: Options | None = None, compiler_exemptions: bool = False
) -> tuple[EngineVerdict, ...]:
    """One verdict a function of the module."""
    return _file("", module, order, options or Options(), compiler_exemptions).programs


def _file(path: str, module: Module, order: str, options: Options, compiler_exemptions: bool) -> FileVerdict:
    wanted = replace(options, compiler_exemptions=compiler_exemptions)
    verdicts = [check(program, order=order, options=wanted) for program in lower_all(module)]
    return FileVerdict(path, module.core, tuple(verdicts))


@dataclass(frozen=True, slots=True)
class CoreFile:
    """What tells which files belong together."""

    path: Path
    core: int | None
    functions: frozenset[str]


def logical_cores(files: Sequence[CoreFile]) -> list[list[CoreFile]]:
    """The groups of files that are the cores of one logical core, core 0 first."""
    groups: dict[tuple[object, ...], list[CoreFile]] = {}
    for one in files:
        if one.core is not None:
            groups.setdefault((_home(one.path), one.functions), []).append(one)
    found = []
    for group in groups.values():
        if len(group) > 1 and len({one.core for one in group}) == len(group):
            found.append(sorted(group, key=lambda one: one.core or 0))
    return found


def _home(path: Path) -> tuple[str, ...]:
    """The folder of a file, with the part that names the core left out."""
    return tuple("nc" if _CORE_FOLDER.match(part) else part for part in path.absolute().parent.parts)


def _cores(group: Sequence[CoreFile], order: str, *, compiler_rules: bool) -> CoresVerdict:
    modules = [load(one.path) for one in group]
    orders = (DEPENDENCIES, SEMAPHORES) if order == BOTH else (order,)
    functions = [
        verdict for one in orders for verdict in check_cores(modules, order=one, compiler_rules=compiler_rules)
    ]
    return CoresVerdict(tuple(str(one.path) for one in group), tuple(functions), verify_split(modules))
