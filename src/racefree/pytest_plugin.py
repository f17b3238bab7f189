"""The pytest plugin: options, marks and the fixture. Everything else is loaded only when they are used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from racefree.testlaunches import TestLaunches


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("racefree", "data races of accelerator kernels")
    group.addoption(
        "--racefree",
        action="store_true",
        help="decide every kernel launch of every test instead of running it; a race fails the test that launched it",
    )
    group.addoption("--racefree-target", metavar="ARCH", help="compile kernels for this target, e.g. cuda:90 [cuda:80]")
    group.addoption("--racefree-baseline", metavar="FILE", help="races that this file knows do not fail a test")
    group.addoption("--racefree-cache", metavar="FOLDER", help="keep proofs here, and do not prove again what is kept")
    group.addoption(
        "--racefree-interpret",
        action="store_true",
        default=None,
        help="run proved launches in Triton's interpreter, so that later ones find what they compute",
    )
    group.addoption(
        "--racefree-output",
        action="append",
        default=[],
        metavar="FORMAT=FILE",
        help="also write a report on all tests, e.g. json=races.json; repeatable",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """The launches are taken from here on: conftest files and test modules may ask for the device when imported."""
    if early_config.known_args_namespace.racefree:
        from racefree.testrun import start

        start(early_config, early_config.known_args_namespace)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "racefree_allow(rule, reason=...): races of this rule (RF001, ...) do not fail the test, which says why",
    )
    if config.getoption("--racefree"):
        from racefree.testrun import start

        config.pluginmanager.register(start(config, config.option), "racefree-run")


@pytest.fixture
def racefree(request: pytest.FixtureRequest) -> Iterator[TestLaunches]:
    """The kernel launches of this test: decided, not run. `racefree.launches`, `racefree.races`, `racefree.check()`."""
    from racefree.testrun import launches_of

    with launches_of(request) as launches:
        yield launches
