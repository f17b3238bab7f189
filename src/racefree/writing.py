"""Writes a report to files and to stdout. What cannot be written to one of them stops none of the others."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TextIO

from racefree.errors import InputError
from racefree.report import formats, text
from racefree.report.model import Report


@dataclass(frozen=True, slots=True)
class Target:
    """A format and the file it goes to, or stdout for None."""

    format: str
    path: Path | None


def targets(outputs: Sequence[str], shown: str) -> list[Target]:
    """Where `--output [FORMAT=]FILE` and the format `shown` on stdout lead; a FILE without a format takes the place of stdout.

    Raises InputError for a file that cannot be there, and for what stands where a format should and is none.
    """
    found: list[Target] = []
    on_stdout = True
    for output in outputs:
        name, equals, file = output.partition("=")
        named = bool(equals) and name in formats.NAMES
        if equals and not named and re.fullmatch(r"[\w-]+", name):
            known = ", ".join(formats.NAMES)
            raise InputError(
                f"--output {output}: {name} is no format; the formats are {known} (a file: --output ./{output})"
            )
        path = Path(file if named else output).absolute()
        if path.is_dir() or not path.parent.is_dir():
            raise InputError(f"cannot write {file if named else output}: no such folder, or it is one")
        found.append(Target(name if named else shown, path))
        on_stdout &= named
    return [*found, Target(shown, None)] if on_stdout else found


def write(report: Report, wanted: Sequence[Target], options: text.Options, stdout: TextIO) -> None:
    """Raises InputError once all is written that can be, with a line for each target that could not.

    Of a text that a target's encoding cannot express, what it cannot is written as escapes.
    """
    failed = []
    for target in wanted:
        try:
            if target.path is None:
                show(_rendered(target.format, report, options, stdout), stdout)
            else:
                rendered = _rendered(target.format, report, options)
                target.path.write_text(rendered, encoding="utf-8", errors="backslashreplace")
        except OSError as error:
            failed.append(f"cannot write {target.path}: {error.strerror or error}")
        except InputError as error:
            failed.append(str(error))
    if failed:
        raise InputError("\nracefree: ".join(failed))


def show(rendered: str, stdout: TextIO) -> None:
    """Raises InputError if it cannot be written. A reader who leaves early has seen enough, which is no error."""
    encoding = stdout.encoding or "utf-8"
    try:
        stdout.write(rendered.encode(encoding, errors="backslashreplace").decode(encoding))
        stdout.flush()
    except BrokenPipeError:  # the exit status still tells the answer
        _discard(stdout)
    except OSError as error:
        _discard(stdout)
        raise InputError(f"cannot write stdout: {error.strerror or error}") from error


def _discard(stream: TextIO) -> None:
    """Lets what the stream still holds go nowhere, so that closing it does not fail once more."""
    try:
        number = stream.fileno()
    except (OSError, ValueError):
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), number)


def _rendered(name: str, report: Report, options: text.Options, stdout: TextIO | None = None) -> str:
    if name != "text":
        return formats.render(name, report)
    if stdout is None:
        return text.render(report, replace(options, colour=False, cut=False))
    return text.render(report, replace(options, colour=_is_coloured(stdout), cut=stdout.isatty()))


def _is_coloured(stdout: TextIO) -> bool:
    """By the conventions of no-color.org and force-color.org: on a terminal, unless a variable says otherwise."""
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return stdout.isatty() and os.environ.get("TERM") != "dumb"


def terminal_width() -> int:
    """In columns."""
    return shutil.get_terminal_size((100, 24)).columns
