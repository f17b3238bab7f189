"""What `pytest --racefree` does: takes the launches of a whole test run, tells each test's races apart, sums up."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import racefree
from racefree import baseline
from racefree.analysis import Analyst
from racefree.config import settings
from racefree.errors import RacefreeError
from racefree.report import formats, json_format, text
from racefree.report.allowances import stale_comments
from racefree.report.build import launch_subjects, of_launches, of_subjects
from racefree.report.model import Report, Subject, count, distinct_findings
from racefree.session import deciding
from racefree.testlaunches import TestLaunches, told
from racefree.triton.asserts import TOLERATED, make_lenient

_DISREGARDED, _STOPPED = "racefree-disregarded", "racefree-stopped"
"""Properties of a test that found wrong results, and of one that ended with that."""

_BESIDE, _UNFINISHED = "racefree-beside", "racefree-unfinished"
"""What a worker tells at its end: launches made outside of tests, and by tests without a result."""

_ATTRIBUTE = "racefree"
"""The attribute of a test report that carries what its test launched, as JSON-ready data, to the process that sums up."""

_LAUNCHES = pytest.StashKey[TestLaunches]()


def start(config: pytest.Config, options: Any) -> TestRun:
    """The one test run of a pytest process, begun at the first call.

    It takes launches, and answers for the device, in a process that only hands tests to workers too: there as well conftest
    files ask for it. Raises pytest.UsageError for options that make no sense, and when Triton or torch cannot be used.
    """
    if _RUN in config.stash:
        return config.stash[_RUN]
    outputs = tuple(_output(given) for given in options.racefree_output)
    try:
        given = {name: getattr(options, f"racefree_{name}") for name in ("target", "baseline", "cache", "interpret")}
        chosen = settings(project=config.rootpath, **given)
        known = None if chosen.baseline is None else baseline.read(Path(chosen.baseline))
        draws = formats.pictures([name for name, _ in outputs])
        run = config.stash[_RUN] = TestRun(Analyst(chosen, draws=draws), outputs, known)
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
    path = Path(file).absolute()
    if path.is_dir() or not path.parent.is_dir():
        raise pytest.UsageError(f"--racefree-output {given}: cannot write {file}: no such folder, or it is one")
    return name, path


class TestRun:
    """Registered as a plugin of one pytest process, be it the only one, a worker, or the one that sums up what workers find."""

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
        self._all: list[TestLaunches] = []
        self._strict = False
        self._subjects: list[Subject] = []
        self._beside: list[Subject] = []
        self._unfinished: list[Subject] = []
        self._unwritten: list[str] = []
        self._ended: list[Any] = []
        self._lost = 0
        self._disregarded: list[str] = []
        self._stopped: list[str] = []

    def take_launches(self) -> None:
        self._open.enter_context(lenient_tests(self._passes_over))
        self._open.enter_context(deciding(self._analyst, _nobody, queue_now=lambda: self._current.queue))

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
        self._all.append(self._current)
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
        launches = item.stash.get(_LAUNCHES, None)
        if launches is None:
            return report
        # What a setup launches that does well is accounted for by the test itself.
        if report.when != "setup" or not report.passed:
            self._judge(report, item, call, launches)
        if report.when == "teardown":
            subjects = launch_subjects(launches.untold())
            setattr(report, _ATTRIBUTE, [json_format.plain_data(subject) for subject in subjects])
        return report

    def _judge(
        self, report: pytest.TestReport, item: pytest.Item, call: pytest.CallInfo[Any], launches: TestLaunches
    ) -> None:
        """A race fails the test whatever else it did; a wrong result does not, since no kernel ran to make it right."""
        found = self._without_known(of_launches(launches.unjudged()))
        allowed = {str(rule).upper() for mark in item.iter_markers("racefree_allow") for rule in mark.args}
        races = [race for race in distinct_findings(found) if race.finding.rule not in allowed]
        if races:
            if call.excinfo is not None and not report.passed:
                report.sections.append(("racefree", f"apart from that it ended with {call.excinfo.exconly()}"))
            report.outcome = "failed"
            report.longrepr = told(found, races)
            if hasattr(report, "wasxfail"):
                del report.wasxfail
            return
        if report.when != "call" or not launches.launches:
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

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any, error: object | None) -> None:
        """Takes over what a worker of pytest-xdist has that no result of a test brought; an interrupted one ends twice."""
        if node in self._ended:
            return
        self._ended.append(node)
        output = getattr(node, "workeroutput", None)
        if output is None:
            self._lost += 1
            return
        found = {
            name: [json_format.structured(data, Subject) for data in output.get(name, ())]
            for name in (_BESIDE, _UNFINISHED)
        }
        self._unfinished += found[_UNFINISHED]
        self._add_beside(found[_BESIDE])

    def _add_beside(self, subjects: Iterable[Subject]) -> None:
        """What one process launched outside of tests. Every process imports the same modules: their launches count once."""
        known = {_same_launch(subject) for subject in self._beside}
        self._beside += [subject for subject in subjects if _same_launch(subject) not in known]

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Gathers what no result of a test told: launches made outside of tests, and those of tests that did not end."""
        for launches in (self._outside, *self._all):
            launches.queue.close()
        self._add_beside(launch_subjects(self._outside.untold()))
        self._unfinished += launch_subjects([launch for test in self._all for launch in test.untold()])
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output[_BESIDE] = [json_format.plain_data(subject) for subject in self._beside]
            output[_UNFINISHED] = [json_format.plain_data(subject) for subject in self._unfinished]
            return
        report = self._report()
        for name, path in self._outputs:
            try:
                path.write_text(formats.render(name, report), encoding="utf-8", errors="backslashreplace")
            except OSError as error:
                self._unwritten.append(f"cannot write {path}: {error.strerror or error}")
        ended_well = session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED)
        if ended_well and (self._unwritten or distinct_findings(self._beside_report())):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _report(self) -> Report:
        notes = list(self._unwritten)
        for subjects, what in (
            (self._beside, "launches were made outside of any test"),
            (self._unfinished, "launches were made by tests that did not end"),
        ):
            if subjects:
                notes.append(f"{sum(subject.repeats for subject in subjects)} {what}")
        if self._lost:
            notes.append(f"{self._lost} workers ended early; what the tests that they were at launched is not known")
        if self._disregarded:
            wrong = f"{len(self._disregarded)} tests found wrong results, which was disregarded, since no kernel ran"
            cut = f"; {len(self._stopped)} of them ended there, so that what they launch later is not known"
            notes.append(wrong + (cut if self._stopped else ""))
        report = self._without_known(of_subjects((*self._beside, *self._unfinished, *self._subjects), notes=notes))
        return replace(report, notes=(*report.notes, *stale_comments(report)))

    def _beside_report(self) -> Report:
        """The launches that no test answers for."""
        return self._without_known(of_subjects((*self._beside, *self._unfinished)))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        report, beside = self._report(), self._beside_report()
        terminalreporter.section("racefree")
        for race in distinct_findings(beside):
            terminalreporter.write_line(text.race(beside, race, text.Options()))
        shown = text.render_gaps(report)
        if shown:
            terminalreporter.write_line(shown)
        for line in (*report.notes, text.summary(count(report))):
            terminalreporter.write_line(line)


def _same_launch(subject: Subject) -> tuple[Any, ...]:
    return subject.name, subject.site, subject.origin, subject.details, subject.status


def _nobody(_launch: object) -> None:
    """Hears of no launch: each goes to the test that makes it."""


_RUN = pytest.StashKey[TestRun]()


def _is_strict(item: pytest.Item) -> bool:
    """What a test that asks for the fixture asserts is about its launches, so it counts."""
    return "racefree" in getattr(item, "fixturenames", ())


def _wrong_result(report: pytest.TestReport, call: pytest.CallInfo[Any]) -> str | None:
    """What a failed test complained of, if it is something that only a kernel that runs can make right."""
    if call.excinfo is not None and _is_about_results(call.excinfo.value):
        return call.excinfo.exconly()
    words = str(report.longrepr)
    return words if call.excinfo is None and words.startswith("[XPASS(strict)]") else None


def _is_about_results(error: BaseException) -> bool:
    """An assertion, or a doctest that shows something else than what it prints."""
    from doctest import DocTestFailure

    failures = getattr(error, "failures", None)  # several examples of one doctest
    if isinstance(failures, list) and failures:
        return all(isinstance(failure, DocTestFailure) for failure in failures)
    return isinstance(error, (AssertionError, pytest.fail.Exception, DocTestFailure))


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
    queue = launches.queue
    with deciding(Analyst(settings(project=request.config.rootpath)), _nobody, queue_now=lambda: queue):
        yield launches
