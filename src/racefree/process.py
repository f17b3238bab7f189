"""What a command does with its process: where output goes, how errors and signals end it, and with which status."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from types import FrameType
from typing import NoReturn, TextIO

import click

from racefree.errors import InputError, MissingPackage, RacefreeError, UnsupportedVersion
from racefree.report import exits


def open_standard_streams() -> None:
    """Lets what goes to a standard stream that was closed from the start go nowhere.

    Each takes the least number that is free, which is its own, so that no file opened later gets what a script prints.
    """
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


@contextmanager
def told_plainly() -> Iterator[None]:
    """Errors a user can act on become one line and exit status 2; anything else is ours, and says so with status 70."""
    try:
        yield
    except (InputError, MissingPackage, UnsupportedVersion) as error:
        click.echo(f"racefree: {error}", err=True)
        sys.exit(exits.BAD_INPUT)
    except (KeyboardInterrupt, click.Abort):
        click.echo("racefree: interrupted", err=True)
        sys.exit(exits.INTERRUPTED)
    except (RacefreeError, Exception) as error:
        if isinstance(error, click.ClickException | click.exceptions.Exit):
            raise
        traceback.print_exc()
        click.echo(f"racefree: internal error: {type(error).__name__}: {error}; please report this", err=True)
        sys.exit(exits.INTERNAL_ERROR)


@contextmanager
def script_output_on_stderr() -> Iterator[TextIO]:
    """Inside the block whatever is printed goes to stderr, from C and child processes too; yields the real stdout."""
    sys.stdout.flush()
    shown = sys.stdout
    try:
        number = shown.fileno()
    except (OSError, ValueError):
        with redirect_stdout(sys.stderr):
            yield shown
        return
    kept = os.dup(number)
    with os.fdopen(kept, "w", encoding=shown.encoding, errors=shown.errors) as real:
        os.dup2(sys.stderr.fileno(), number)
        try:
            with redirect_stdout(sys.stderr):
                yield real
        finally:
            shown.flush()
            real.flush()
            os.dup2(kept, number)


@contextmanager
def stopped_by_signals() -> Iterator[None]:
    """Inside the block SIGTERM acts like Ctrl-C, so that a run that is told to stop still writes what it has."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    owner = os.getpid()

    def stop(number: int, _frame: FrameType | None) -> None:
        if os.getpid() == owner:
            raise KeyboardInterrupt
        signal.signal(number, before)  # a forked child ends as it would have
        os.kill(os.getpid(), number)

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def leave(code: int, *, halted: bool) -> NoReturn:
    """Exits; at once if the run was interrupted, for threads of its script may go on for long."""
    here = threading.current_thread()
    if halted and any(thread is not here and not thread.daemon for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)
