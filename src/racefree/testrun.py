"""What `pytest --racefree` does: takes the launches of a whole test run, tells each test's races apart, sums up."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

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
from racefree.verdict import CompiledRaceRecord

_ATTRIBUTE = "racefree"
"""The attribute of a test report that carries what its test launched, as JSON-ready data, to the process that sums up."""


@dataclass(slots=True)
class TestLaunches:
    """What one test has launched so far."""

    __test__ = False

    launches: list[Launch] = field(default_factory=list)

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
        chosen = settings(project=config.rootpath, target=options.racefree_target, baseline=options.racefree_baseline)
        known = None if chosen.baseline is None else baseline.read(Path(chosen.baseline))
        run = config.stash[_RUN] = TestRun(Analyst(chosen), outputs, known)
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
        self._subjects: list[Subject] = []
        self._disregarded: list[str] = []

    def take_launches(self) -> None:
        self._open.enter_context(deciding(self._analyst, lambda launch: self._current.launches.append(launch)))

    def pytest_unconfigure(self) -> None:
        self._open.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        self._current = item.stash.setdefault(_LAUNCHES, TestLaunches())
        try:
            return (yield)
        finally:
            self._current = self._outside

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
        elif call.excinfo is not None and call.excinfo.errisinstance((AssertionError, pytest.fail.Exception)):
            report.outcome = "passed"
            report.longrepr = None
            report.sections.append(("racefree", f"disregarded, since no kernel ran: {call.excinfo.exconly()}"))
            report.user_properties.append(("racefree-disregarded", item.nodeid))

    def _without_known(self, report: Report) -> Report:
        return report if self._known is None else baseline.applied(report, self._known)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call":
            self._disregarded += [str(v) for name, v in report.user_properties if name == "racefree-disregarded"]
        for data in getattr(report, _ATTRIBUTE, ()):
            self._subjects.append(json_format.structured(data, Subject))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        outside = launch_subjects(self._outside.launches)
        notes = []
        if outside:
            notes.append(f"{len(self._outside.launches)} launches were made outside of any test")
        if self._disregarded:
            notes.append(
                f"{len(self._disregarded)} tests found wrong results, which was disregarded, since no kernel ran"
            )
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


def _told(report: Report, races: Any) -> str:
    occurrences: list[Occurrence] = list(races)
    shown = [text.race(report, occurrence, text.Options()) for occurrence in occurrences]
    rules = sorted({occurrence.finding.rule for occurrence in occurrences})
    head = f"this test launches kernels that race: {', '.join(f'{rule} {RULES[rule].title}' for rule in rules)}"
    return "\n\n".join([head, *shown])


@contextmanager
def launches_of(request: pytest.FixtureRequest) -> Iterator[TestLaunches]:
    """The launches of the test that asks: those the whole run takes, or, without `--racefree`, taken for this test alone."""
    launches = request.node.stash.setdefault(_LAUNCHES, TestLaunches())
    if request.config.getoption("--racefree"):
        yield launches
        return
    with deciding(Analyst(settings(project=request.config.rootpath)), launches.launches.append):
        yield launches
