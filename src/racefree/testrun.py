"""What `pytest --racefree` does: takes the launches of a whole test run, tells each test's races apart, sums up."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

import racefree
from racefree import baseline
from racefree.analysis import Analyst
from racefree.config import settings
from racefree.errors import RacefreeError
from racefree.launch import Launch
from racefree.report import formats, json_format, text
from racefree.report.allowances import stale_comments
from racefree.report.build import launch_subjects, of_launches, of_subjects
from racefree.report.model import Occurrence, Report, Subject, count, distinct_findings
from racefree.report.rules import RULES
from racefree.session import deciding
from racefree.triton.asserts import TOLERATED, make_lenient
from racefree.verdict import CompiledRaceRecord

_DISREGARDED, _STOPPED = "racefree-disregarded", "racefree-stopped"
"""Properties of a test that found wrong results, and of one that ended with that."""

_ATTRIBUTE = "racefree"
"""The attribute of a test report that carries what its test launched, as JSON-ready data, to the process that sums up."""


@dataclass(slots=True)
class TestLaunches:
    """What one test has launched so far, and how many of its checks failed after that and were passed over."""

    __test__ = False

    launches: list[Launch] = field(default_factory=list)
    passed_over: int = 0

    @property
    def races(self) -> tuple[CompiledRaceRecord, ...]:
        return tuple(race for launch in self.launches for race in launch.races)

    def check(self) -> None:
        """Fail the test here if one of its launches races."""
        report = of_launches(self.launches)
        found = distinct_findings(report)
        if found:
            pytest.fail(_told(report, found), pytrace=False)


_LAUNCHES = pytest.StashKey[TestLaunches]()


def start(config: pytest.Config, options: Any) -> TestRun:
    """The one test run of a pytest process, begun at the first call.

    A process that only hands tests to workers takes no launches itself. Raises pytest.UsageError for options that make no
    sense, and when Triton or torch cannot be used.
    """
    if _RUN in config.stash:
        return config.stash[_RUN]
    outputs = tuple(_output(given) for given in options.racefree_output)
    hands_out = bool(getattr(options, "numprocesses", None)) and "PYTEST_XDIST_WORKER" not in os.environ
    try:
        given = {name: getattr(options, f"racefree_{name}") for name in ("target", "baseline", "cache")}
        chosen = settings(project=config.rootpath, **given)
        known = None if chosen.baseline is None else baseline.read(Path(chosen.baseline))
        draws = formats.pictures([name for name, _ in outputs])
        run = config.stash[_RUN] = TestRun(Analyst(chosen, draws=draws), outputs, known)
        if not hands_out:
            run.take_launches()
    except RacefreeError as error:
        raise pytest.UsageError(f"--racefree: {error}") from error
    return run


def _output(given: str) -> tuple[str, Path]:
    name, _, file = given.partition("=")
    if name not in formats.NAMES or not file:
        raise pytest.UsageError(
            f"--racefree-output {given}: write FORMAT=FILE, FORMAT one of {', '.join(formats.NAMES)}"
        )
    return name, Path(file)


class TestRun:
    """Registered as a plugin of one pytest process. A process that only hands tests to workers takes no launches itself."""

    __test__ = False

    def __init__(
        self, analyst: Analyst, outputs: tuple[tuple[str, Path], ...], known: baseline.Baseline | None = None
    ) -> None:
        self._analyst = analyst
        self._outputs = outputs
        self._known = known
        self._open = ExitStack()
        self._outside = TestLaunches()
        self._current = self._outside
        self._strict = False
        self._subjects: list[Subject] = []
        self._disregarded: list[str] = []
        self._stopped: list[str] = []

    def take_launches(self) -> None:
        self._open.enter_context(lenient_tests(self._passes_over))
        self._open.enter_context(deciding(self._analyst, lambda launch: self._current.launches.append(launch)))

    def _passes_over(self) -> bool:
        """Whether a check that has just failed does not count: it came after a launch, and no kernel ran to make it hold."""
        if self._strict or not self._current.launches:
            return False
        self._current.passed_over += 1
        return True

    def pytest_unconfigure(self) -> None:
        self._open.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._current = item.stash.setdefault(_LAUNCHES, TestLaunches())
        self._strict = _is_strict(item)
        try:
            return (yield)
        finally:
            self._current, self._strict = self._outside, False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        launches = item.stash.get(_LAUNCHES, TestLaunches())
        if report.when == "call" and launches.launches:
            self._judge(report, item, call, launches)
        if report.when == "teardown" and launches.launches:
            subjects = launch_subjects(launches.launches)
            setattr(report, _ATTRIBUTE, [json_format.plain_data(subject) for subject in subjects])
        return report

    def _judge(
        self, report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[Any], launches: TestLaunches
    ) -> None:
        """A race fails the test whatever else it did; a wrong result does not, since no kernel ran to make it right."""
        found = self._without_known(of_launches(launches.launches))
        allowed = {str(rule).upper() for mark in item.iter_markers("racefree_allow") for rule in mark.args}
        races = [race for race in distinct_findings(found) if race.finding.rule not in allowed]
        if races:
            report.outcome = "failed"
            report.longrepr = _told(found, races)
            if hasattr(report, "wasxfail"):
                del report.wasxfail
            return
        wrong = _wrong_result(report, call) if report.failed and not _is_strict(item) else None
        if wrong is not None:
            report.outcome = "passed"
            report.longrepr = None
            report.sections.append(("racefree", f"disregarded, since no kernel ran: {wrong}"))
            if call.excinfo is not None:
                report.user_properties.append((_STOPPED, item.nodeid))
        if wrong is not None or launches.passed_over:
            report.user_properties.append((_DISREGARDED, item.nodeid))

    def _without_known(self, report: Report) -> Report:
        return report if self._known is None else baseline.applied(report, self._known)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._disregarded += [str(v) for name, v in report.user_properties if name == _DISREGARDED]
            self._stopped += [str(v) for name, v in report.user_properties if name == _STOPPED]
        for data in getattr(report, _ATTRIBUTE, ()):
            self._subjects.append(json_format.structured(data, Subject))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        outside = launch_subjects(self._outside.launches)
        notes = []
        if outside:
            notes.append(f"{len(self._outside.launches)} launches were made outside of any test")
        if self._disregarded:
            told = f"{len(self._disregarded)} tests found wrong results, which was disregarded, since no kernel ran"
            cut = f"; {len(self._stopped)} of them ended there, so that what they launch later is not known"
            notes.append(told + (cut if self._stopped else ""))
        report = self._without_known(of_subjects((*outside, *self._subjects), notes=notes))
        report = replace(report, notes=(*report.notes, *stale_comments(report)))
        terminalreporter.section("racefree")
        shown = text.render_gaps(report)
        if shown:
            terminalreporter.write_line(shown)
        for line in (*report.notes, text.summary(count(report))):
            terminalreporter.write_line(line)
        for name, path in self._outputs:
            path.write_text(formats.render(name, report), encoding="utf-8")


_RUN = pytest.StashKey[TestRun]()


def _is_strict(item: pytest.Item) -> bool:
    """What a test that asks for the fixture asserts is about its launches, so it counts."""
    return "racefree" in getattr(item, "fixturenames", ())


def _wrong_result(report: pytest.TestReport, call: pytest.CallInfo[Any]) -> str | None:
    """What a failed test complained of, if it is something that only a kernel that runs can make right."""
    if call.excinfo is not None and call.excinfo.errisinstance((AssertionError, pytest.fail.Exception)):
        return call.excinfo.exconly()
    told = str(report.longrepr)
    return told if call.excinfo is None and told.startswith("[XPASS(strict)]") else None


def _told(report: Report, races: Any) -> str:
    occurrences: list[Occurrence] = list(races)
    shown = [text.race(report, occurrence, text.Options()) for occurrence in occurrences]
    rules = sorted({occurrence.finding.rule for occurrence in occurrences})
    head = f"this test launches kernels that race: {', '.join(f'{rule} {RULES[rule].title}' for rule in rules)}"
    return "\n\n".join([head, *shown])


@contextmanager
def lenient_tests(tolerates: Callable[[], bool]) -> Iterator[None]:
    """Inside the block the test modules that pytest imports go on after a check that fails while `tolerates()` is true.

    They are compiled apart from those of other runs, which pytest keeps in files. Without pytest's rewriting of assertions
    (`--assert=plain`) a test ends at the first check that fails.
    """
    import builtins

    from _pytest.assertion import rewrite

    real, tail = rewrite.rewrite_asserts, rewrite.PYC_TAIL

    def rewrite_asserts(tree: ast.Module, *rest: Any, **more: Any) -> None:
        make_lenient(tree)
        real(tree, *rest, **more)

    setattr(builtins, TOLERATED, tolerates)
    vars(rewrite).update(rewrite_asserts=rewrite_asserts, PYC_TAIL=f"-racefree-{racefree.__version__}{tail}")
    try:
        yield
    finally:
        vars(rewrite).update(rewrite_asserts=real, PYC_TAIL=tail)
        setattr(builtins, TOLERATED, lambda: False)  # modules imported meanwhile may still ask


@contextmanager
def launches_of(request: pytest.FixtureRequest) -> Iterator[TestLaunches]:
    """The launches of the test that asks: those the whole run takes, or, without `--racefree`, taken for this test alone."""
    launches = request.node.stash.setdefault(_LAUNCHES, TestLaunches())
    if request.config.getoption("--racefree"):
        yield launches
        return
    with deciding(Analyst(settings(project=request.config.rootpath)), launches.launches.append):
        yield launches
