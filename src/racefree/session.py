"""The Python interface: analyse one launch, or take every launch that a piece of code makes."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from racefree import replaying
from racefree.analysis import Analyst
from racefree.computing import SECONDS, Computer
from racefree.config import Settings, settings
from racefree.errors import InputError
from racefree.inorder import InOrder
from racefree.launch import Launch
from racefree.replaying import MOST_PROGRAMS, Replayer
from racefree.verdict import Status

if TYPE_CHECKING:
    from racefree.triton.launches import CapturedLaunch

DISABLE_VARIABLE = "ENABLE_RACE_DETECTOR"
SAVED_KIND = "racefree-verdicts"
SAVED_SCHEMA = 2

launches: list[Launch] = []
"""Every launch analysed in this process, oldest first. `launches.clear()` forgets them."""

OnLaunch = Callable[[Launch], None]

_listeners: list[OnLaunch] = []


def analyze(
    kernel: Any, *args: Any, grid: Any, target: str | None = None, lanes: str | None = None, **kwargs: Any
) -> Launch:
    """Decide one launch of `kernel` without running it.

    `args` and `kwargs` are what the kernel is called with (constexprs and `num_warps` included), `grid` a tuple or a callable.
    What cannot be analysed is in the verdict, as `unsupported` with a refusal; it is never raised.
    Raises MissingPackage without Triton, UnsupportedVersion with one that is not supported.
    """
    from racefree.triton.capture import capture_one

    chosen = settings(target=target, lanes=lanes)
    launch = Analyst(chosen).decide(capture_one(kernel, args, kwargs, grid, chosen.target)).launch
    _record(launch)
    return launch


def _noted(launch: Launch, why_not: str) -> Launch:
    """The launch with a note if it was to be run for what it computes, and could not be."""
    if not why_not or launch.verdict.status is not Status.OK:
        return launch
    note = f"not run in Triton's interpreter: {why_not}"
    return replace(launch, verdict=replace(launch.verdict, notes=(*launch.verdict.notes, note)))


def _record(launch: Launch) -> None:
    launches.append(launch)
    for listener in _listeners:
        listener(launch)


@contextmanager
def overhearing(listener: OnLaunch) -> Iterator[None]:
    """Inside the block `listener` hears of every launch that `analyze` and `trace` decide, whoever calls them.

    So whoever runs code that asks for itself does not take its launches for launches that were never made.
    """
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)


@dataclass(frozen=True, slots=True)
class CompiledRaceDetector:
    """Takes launches, compiles them on the host and decides them. Made by `RaceDetector()`.

    `on_launch` is called with every launch once it is decided; by default races and what was not analysed go to stderr.
    `replays` is of how many program instances a launch is also run, in Triton's interpreter, to check its verdict; None for
    no such run.
    """

    settings: Settings
    on_launch: OnLaunch | None = None
    replays: int | None = None
    analyst: Analyst = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "analyst", Analyst(self.settings))

    def watching(self) -> AbstractContextManager[None]:
        """Analyse every launch made inside the `with` block."""
        return _watching(self)


@dataclass(frozen=True, slots=True)
class NullRaceDetector:
    """Does nothing: what `RaceDetector()` gives when `ENABLE_RACE_DETECTOR` is 0. Kernels run as they always did."""

    def watching(self) -> AbstractContextManager[None]:
        return nullcontext()


Detector = CompiledRaceDetector | NullRaceDetector


def RaceDetector(
    *,
    compile: bool = False,
    target: str | None = None,
    lanes: str | None = None,
    on_launch: OnLaunch | None = None,
    replay_programs: int | None = None,
    interpret: bool = False,
) -> Detector:
    """A detector for `trace`: it decides every launch from the kernel's compiled TTIR, and checks the verdict by a run.

    The run is one of Triton's interpreter in a forked process, whose accesses are written down: of the program instances
    that a race names, or of the whole grid where a proof is checked or atomics order the launch, up to `replay_programs`
    instances (256). A verdict that the run contradicts becomes `unsupported` (`internal-error`), and its reason names both
    sides. What cannot be run is said and does not count as checked. With `interpret` a proved launch is also run for what it
    computes, so that the tensors hold it when the next one is made. With `compile=True` nothing is ever run.

    With the environment variable `ENABLE_RACE_DETECTOR=0` the detector does nothing.
    """
    if os.environ.get(DISABLE_VARIABLE, "").strip().lower() in ("0", "false", "off"):
        return NullRaceDetector()
    if compile and replay_programs is not None:
        raise InputError("with compile=True nothing is run: leave replay_programs out")
    if compile and interpret:
        raise InputError("with compile=True nothing is run: leave interpret out")
    chosen = settings(target=target, lanes=lanes, interpret=interpret)
    return CompiledRaceDetector(chosen, on_launch, None if compile else replay_programs or MOST_PROGRAMS)


@contextmanager
def _watching(detector: CompiledRaceDetector) -> Iterator[None]:
    from racefree.report.live import LiveReport

    told = detector.on_launch or LiveReport()

    def add(launch: Launch) -> None:
        _record(launch)
        told(launch)

    replayer = None
    if detector.replays is not None:
        replayer = Replayer(detector.replays, replaying.SECONDS * detector.settings.budget)
    with deciding(detector.analyst, add, replayer=replayer):
        yield


@contextmanager
def deciding(
    analyst: Analyst,
    add: OnLaunch,
    *,
    also: Callable[[CapturedLaunch], None] | None = None,
    replayer: Replayer | None = None,
    queue_now: Callable[[], InOrder] | None = None,
) -> Iterator[None]:
    """Take every launch made inside the block, decide it, and hand it to `add`; the taken launch itself goes to `also`.

    With a `replayer`, verdicts are checked by running the launch in Triton's interpreter; if the settings say so, proved
    launches are run there for what they compute. Launches of several threads are decided side by side, and `add` hears of
    them one at a time, in the order in which they were made. A launch whose analysis is interrupted is handed over as not
    analysed before the interrupt goes on its way, to the main thread too.
    With `queue_now`, a launch goes into the queue that this names when the launch is made, and `add` hears of none.
    """
    from racefree.triton.capture import capturing

    queue = InOrder(add)
    computer = Computer(SECONDS * analyst.settings.budget) if analyst.settings.interpret else None

    def take(captured: CapturedLaunch) -> None:
        if also is not None:
            also(captured)
        with (queue if queue_now is None else queue_now()).place() as place:
            place.filled_with = analyst.interrupted(captured)
            decided = analyst.decide(captured)
            launch = decided.launch
            if replayer is not None:
                launch = replayer.checked(launch, captured, capture.running)
            why_not = "" if computer is None else computer.compute(replace(decided, launch=launch), captured, capture)
            place.filled_with = _noted(launch, why_not)
        if computer is not None and not why_not:
            capture.mark_written(())
        elif decided.storages_written is not None:
            capture.mark_written(decided.storages_written, why_not)

    with capturing(take, target=analyst.settings.target) as capture:
        try:
            yield
        finally:
            queue.close()


Traced = TypeVar("Traced")


class _Trace:
    """`with trace(detector):` around code, or `@trace(detector)` on a kernel or a function."""

    __slots__ = ("_detector", "_open")

    def __init__(self, detector: Detector) -> None:
        self._detector = detector
        self._open: list[AbstractContextManager[None]] = []

    def __enter__(self) -> Detector:
        watching = self._detector.watching()
        watching.__enter__()
        self._open.append(watching)
        return self._detector

    def __exit__(self, *failure: Any) -> None:
        self._open.pop().__exit__(*failure)

    @overload
    def __call__(self, traced: Callable[..., Traced]) -> Callable[..., Traced]: ...
    @overload
    def __call__(self, traced: Any) -> Any: ...
    def __call__(self, traced: Any) -> Any:
        if hasattr(traced, "__getitem__") and hasattr(traced, "run"):
            return TracedKernel(traced, self._detector)

        @functools.wraps(traced)
        def watched(*args: Any, **kwargs: Any) -> Any:
            with self._detector.watching():
                return traced(*args, **kwargs)

        return watched


def trace(detector: Detector | None = None) -> _Trace:
    """Analyse every launch made under it, as a context manager or as a decorator of a kernel or function.

    The results are appended to `racefree.launches`.
    """
    return _Trace(RaceDetector(compile=True) if detector is None else detector)


@dataclass(frozen=True, slots=True)
class TracedKernel:
    """A kernel whose launches are analysed. Everything else of the kernel is reachable through it."""

    kernel: Any
    detector: Detector

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        return functools.partial(self.run, grid=grid, warmup=False)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        with self.detector.watching():
            return self.kernel.run(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.kernel, name)


def save(path: str | Path, saved: Sequence[Launch] | None = None) -> None:
    """Write launches with their verdicts and records to a JSON file; by default all of `racefree.launches`."""
    from racefree.report.json_format import dumps

    Path(path).write_text(dumps(SAVED_KIND, SAVED_SCHEMA, list(launches if saved is None else saved)), encoding="utf-8")


def load(path: str | Path) -> list[Launch]:
    """The launches that `save` wrote, with this version of racefree or an older one.

    Raises InputError when the file is missing, damaged or of a newer schema.
    """
    from racefree.report.json_format import loads, read

    def parse(text: str) -> list[Launch]:
        return loads(text, kind=SAVED_KIND, schema=SAVED_SCHEMA, into=list[Launch], upgrades={1: _callers_as_sites})

    return read(Path(path), parse)


def _callers_as_sites(value: Any) -> Any:
    """Schema 1 gave the callers of a race's access as [file, line, function]."""
    match value:
        case {"callers": callers, **rest}:
            sites = [_site(*caller) if isinstance(caller, list) else caller for caller in callers]
            return {name: _callers_as_sites(each) for name, each in rest.items()} | {"callers": sites}
        case dict():
            return {name: _callers_as_sites(each) for name, each in value.items()}
        case list():
            return [_callers_as_sites(each) for each in value]
        case _:
            return value


def _site(file: str, line: int, function: str) -> dict[str, Any]:
    return {"file": file, "line": line, "column": 0, "function": function, "callers": []}
