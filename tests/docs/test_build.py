"""The documentation builds without a warning, and says what the program says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest
from pages import PAGES, ROOT

from racefree.cli import check, report_command
from racefree.config import Settings
from racefree.proof.memory_model import memory_model
from racefree.report import exits, formats
from racefree.report.rules import RULES
from racefree.verdict import (
    ASSUMES_IN_BOUNDS,
    ASSUMES_TERMINATION,
    ONE_THREAD_PER_LANE,
    READS_CONTENTS,
    REDUCTIONS_SYNCHRONISE,
    REPLICAS_LOAD_FIRST,
    Cause,
    ProofScope,
    Status,
    assumes_no_overflow,
)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages as HTML; any warning fails."""
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "sphinx",
            "-q",
            "-W",
            "--keep-going",
            "-E",
            "-d",
            out / "trees",
            ROOT / "docs",
            out / "html",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return out / "html"


def words(page: Path) -> str:
    """The text of a page, without its markup."""
    body = page.read_text(encoding="utf-8").partition("<article")[2].partition("</article>")[0]
    return " ".join(re.sub(r"<[^>]+>", "", body).split())


def test_every_rule_has_its_section(site: Path) -> None:
    html = (site / "rules.html").read_text(encoding="utf-8")
    said = words(site / "rules.html")
    for rule in RULES.values():
        assert f'<section id="{rule.name.lower()}">' in html
        assert f"{rule.name}: {rule.title}" in said
        assert " ".join(rule.hardware.replace("`", "").split())[:40] in said.replace("’", "'")


def test_the_memory_models_are_those_of_the_program(site: Path) -> None:
    said = words(site / "memory-model.html")
    for version in ("3.7", "3.8", "3.9"):
        model = memory_model(version, "cuda:80")
        facts = (model.barrier_before_release, model.barrier_after_acquire, model.barrier_in_reduction)
        row = " ".join("barrier" if fact else "none counted" for fact in facts)
        assert f"{model.name} {row}" in said
    assert "(nothing added) not measured not measured not measured" in said


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def test_words_of_a_verdict_are_explained() -> None:
    text = page("verdicts.md")
    qualifiers = (
        ASSUMES_TERMINATION,
        ONE_THREAD_PER_LANE,
        READS_CONTENTS,
        REDUCTIONS_SYNCHRONISE,
        REPLICAS_LOAD_FIRST,
        ASSUMES_IN_BOUNDS,
        assumes_no_overflow(32),
    )
    for word in (*(s.value for s in Status), *(s.value for s in ProofScope), *qualifiers):
        assert f"| `{word}` |" in text, word


def test_every_cause_of_a_race_is_explained() -> None:
    table = page("verdicts.md").partition("| cause |")[2].partition("\n\n")[0]
    told = {name for row in table.splitlines()[2:] for name in re.findall(r"`([a-z ]+)`", row.partition(" | ")[0])}
    assert told == {cause.value for cause in Cause}


def test_every_format_and_exit_status_is_listed() -> None:
    for name in formats.NAMES:
        assert f"| `{name}` |" in page("formats.md"), name
    statuses = [value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)]
    assert len(statuses) == 7
    for status in statuses:
        assert f"\n| {status} |" in page("exit-status.md"), status


def test_every_option_is_told() -> None:
    """But for help, and the second name of what is so anyhow."""
    text = "".join(path.read_text(encoding="utf-8") for path in PAGES)
    for command in (check, report_command):
        for name in (param.opts[0] for param in command.params if isinstance(param, click.Option)):
            assert name in text or name in ("--help", "--all"), name
    plugin = (ROOT / "src/racefree/pytest_plugin.py").read_text(encoding="utf-8")
    for name in re.findall(r'"(--racefree[a-z-]*)"', plugin):
        assert f"`{name}" in page("in-tests.md") or f" {name} " in page("in-tests.md"), name


def test_every_setting_is_shown() -> None:
    for name in Settings.__dataclass_fields__:
        assert re.search(rf"^{name} = ", page("continuous-integration.md"), re.MULTILINE), name


def test_kinds_of_refusals_are_those_of_the_program() -> None:
    table = page("limits.md").partition("| kind |")[2].partition("\n\n")[0]
    kinds = {kind for row in table.splitlines() for kind in re.findall(r"`([a-z-]+)`", row.partition(" | ")[0])}
    assert len(kinds) > 10
    program = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert {kind for kind in kinds if f'"{kind}"' not in program} == set()
