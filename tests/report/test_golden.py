"""Every format of a racy and of a clean run, of launches and of engine programs, against files of what it has to say.

`UPDATE_GOLDEN=1` writes the files anew. What changes from run to run is left out: times, addresses, versions.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from golden_files import matches

from racefree.report import formats, html, json_format
from racefree.report.model import Report

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples" / "engine"
RUNS = {
    "launch-racy": HERE / "runs" / "racy.py",
    "launch-clean": HERE / "runs" / "clean.py",
    "engine-racy": EXAMPLES / "racy.json",
    "engine-clean": EXAMPLES / "clean.json",
}


@cache
def report_of(run: str) -> Report:
    """The report of a real run, with pictures, as read back from its JSON."""
    from click.testing import CliRunner

    from racefree.cli import racefree_command

    target = RUNS[run]
    with TemporaryDirectory() as folder:
        path = Path(folder, "report.json")
        outputs = [f"--output=json={path}", f"--output=html={folder}/report.html"]
        done = CliRunner().invoke(racefree_command, ["check", *outputs, str(target)], catch_exceptions=False)
        assert done.exit_code == (1 if run.endswith("racy") else 0), done.output
        text = path.read_text(encoding="utf-8").replace(str(target.parent), "/project")
    document = steady(json.loads(text))
    document["value"]["root"] = "/project"
    return json_format.parse(json.dumps(document))


def steady(value: Any, key: str = "") -> Any:
    """The document without what changes from run to run."""
    match value:
        case dict():
            return {name: steady(inner, name) for name, inner in value.items()}
        case list():
            return [steady(inner) for inner in value]
        case float() if key == "seconds":
            return 0.0
        case int() if key == "address_bytes":
            return 0
        case str() if key == "version":
            return "0.0.0"
        case str() if key == "memory_model":
            return "triton cuda"
        case _:
            return value


@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", formats.NAMES)
def test_format(name: str, run: str) -> None:
    rendered = formats.render(name, report_of(run))
    if name == "html":
        rendered = rendered.replace(html.scripts(), "(the scripts)").replace(html.asset("report.css"), "(the style)")
    matches(f"{run}.{name}", rendered)


def test_every_format_has_its_four_files() -> None:
    files = {path.name for path in (HERE / "golden").iterdir()}
    assert {f"{run}.{name}" for run in RUNS for name in formats.NAMES} <= files
