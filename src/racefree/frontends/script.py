"""Runs a Python script in this process and decides every launch it makes; how the script ends is part of the report."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from racefree.analysis import Analyst
from racefree.errors import InputError
from racefree.frontends import Found, Request
from racefree.frontends.children import spooling
from racefree.launch import Launch
from racefree.replaying import SECONDS, Replayer
from racefree.report.model import Ending, Script
from racefree.session import deciding, overhearing
from racefree.verdict import ReplayOutcome

if TYPE_CHECKING:
    from racefree.triton.launches import CapturedLaunch


class _HardExit(BaseException):
    """`os._exit` called by the script in its main thread; it must not take the report with it."""

    def __init__(self, status: int) -> None:
        super().__init__(status)
        self.status = status


def check(request: Request, found: Found) -> None:
    """Run the script of the request. What it launches is added to `found`, its ending becomes `found.script`.

    Raises InputError when it has a syntax error, MissingPackage or UnsupportedVersion when Triton or torch are not there.
    """
    _check_syntax(request.path)
    analyst = Analyst(request.settings, draws=request.draws)
    owner = os.getpid()
    with spooling(found) as spool:

        def add(launch: Launch) -> None:
            (found.add if spool.in_owner else spool.write)(launch)

        keep = _keep(request, found)
        skipped = threading.Event()

        def take(captured: CapturedLaunch) -> None:
            skipped.set()
            if keep is not None:
                keep(captured)
            if spool.in_owner:
                found.begin(captured.kernel)

        path = request.path.absolute()  # the script may change the folder it runs in
        replayer = None if request.replays is None else Replayer(request.replays, SECONDS * request.settings.budget)
        with overhearing(add), deciding(analyst, add, also=take, replayer=replayer):
            script = _ending(str(path), lambda: _run(path, (str(request.path), *request.arguments), skipped.is_set))
            if os.getpid() != owner:
                _leave_child(script)
    found.script = script
    if script.ending is Ending.FINISHED and not found.launches:
        found.notes.append(f"{request.path} launched no Triton kernel, so nothing was checked")
    found.notes += _unchecked_scripts(request)
    found.tracebacks += analyst.tracebacks
    if replayer is not None:
        found.tracebacks += replayer.tracebacks
        outcomes = [
            c.replay.outcome for launch in found.launches for c in launch.verdict.configs if c.replay is not None
        ]
        agreeing = outcomes.count(ReplayOutcome.AGREES)
        found.notes.append(f"{agreeing} of {len(outcomes)} verdicts were checked by a run in Triton's interpreter")


def _unchecked_scripts(request: Request) -> list[str]:
    """What follows a script is its own, even if it looks like a list of scripts to check."""
    scripts = [word for word in request.arguments if word.endswith(".py") and Path(word).is_file()]
    return [f"{word} was an argument of {request.path} and was not checked itself" for word in dict.fromkeys(scripts)]


def _keep(request: Request, found: Found) -> Callable[[CapturedLaunch], None] | None:
    folder = request.save_to
    if folder is None:
        return None
    from racefree.triton.saved import save_launch

    def keep(captured: CapturedLaunch) -> None:
        try:
            save_launch(captured, folder)
        except (InputError, TypeError, ValueError) as error:
            found.notes.append(f"a launch of {captured.kernel} was not saved: {error}")

    return keep


def _check_syntax(path: Path) -> None:
    try:
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        raise InputError(f"{path}:{error.lineno or 1}: syntax error: {error.msg}") from error
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is no Python script: {error}") from error


def _run(path: Path, words: tuple[str, ...], kernel_skipped: Callable[[], bool]) -> None:
    """Runs the script as `__main__`, with `words` as its `sys.argv`.

    What it asserts about results counts only until a kernel has been skipped.
    """
    from racefree.triton.asserts import run_script

    argv, search = sys.argv, list(sys.path)
    sys.argv = list(words)
    sys.path.insert(0, str(path.resolve().parent))
    try:
        with _soft_exit():
            run_script(path, kernel_skipped)
            for thread in threading.enumerate():
                if thread is not threading.current_thread() and not thread.daemon:
                    thread.join()
    finally:
        sys.argv, sys.path[:] = argv, search


@contextmanager
def _soft_exit() -> Iterator[None]:
    """Turns `os._exit` in this process's main thread into an exception, so that the report is still written."""
    hard, owner = os._exit, os.getpid()

    def leave(status: int) -> NoReturn:
        if os.getpid() == owner and threading.current_thread() is threading.main_thread():
            raise _HardExit(status)
        hard(status)

    os._exit = leave
    try:
        yield
    finally:
        os._exit = hard


def _ending(path: str, run: Callable[[], None]) -> Script:
    try:
        run()
    except KeyboardInterrupt:
        return Script(path, Ending.INTERRUPTED, "was interrupted; launches it would have made later were not analysed")
    except SystemExit as leaving:
        return _exited(path, leaving.code)
    except _HardExit as leaving:
        return _exited(path, leaving.status)
    except BaseException as error:
        where, told = _told(path, error)
        message = " ".join(f"{type(error).__name__}: {error}".split())
        text = f"stopped with {message}{where}; launches it would have made later were not analysed"
        return Script(path, Ending.RAISED, text, told)
    return Script(path, Ending.FINISHED)


def _exited(path: str, code: Any) -> Script:
    if code is None or code == 0:
        return Script(path, Ending.FINISHED)
    return Script(path, Ending.EXITED, f"exited with status {code}" if isinstance(code, int) else f"exited: {code}")


def _told(path: str, error: BaseException) -> tuple[str, str]:
    """(where the script was, its traceback without the frames that ran it)"""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    where = f" in line {trace.tb_lineno}" if trace is not None else ""
    return where, "".join(traceback.format_exception(type(error), error, trace))


def _leave_child(script: Script) -> NoReturn:
    """A forked child that runs to the script's end leaves as the script would have left it, and reports nothing itself."""
    status: Mapping[Ending, int] = {Ending.FINISHED: 0, Ending.INTERRUPTED: 130}
    sys.stdout.flush()
    sys.stderr.write(script.traceback)
    sys.stderr.flush()
    os._exit(status.get(script.ending, 1))
