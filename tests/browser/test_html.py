"""The HTML report in a real browser: reports of real runs are opened, clicked, zoomed and read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from racefree.cli import racefree_command
from racefree.report import html
from racefree.report.model import Report, Subject
from racefree.verdict import Status

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
EXAMPLES = Path(__file__).parents[2] / "examples"

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs Debian's chromium")

Open = Callable[[Path], Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any) -> Iterator[Any]:
    """A page that fails the test when it logs an error or asks for anything but its own file."""
    opened = browser.new_page(viewport={"width": 1200, "height": 900})
    wrong: list[str] = []
    opened.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
    opened.on("pageerror", lambda error: wrong.append(str(error)))
    opened.on("request", lambda asked: None if asked.url.startswith("file:") else wrong.append(asked.url))
    yield opened
    assert wrong == []
    opened.close()


def report_of(target: Path, folder: Path) -> Path:
    from click.testing import CliRunner

    path = folder / "report.html"
    CliRunner().invoke(racefree_command, ["check", "--output", f"html={path}", str(target)], catch_exceptions=False)
    return path


@pytest.fixture(scope="module")
def launches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(EXAMPLES / "first_race.py", tmp_path_factory.mktemp("launches"))


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report_of(EXAMPLES / "engine", tmp_path_factory.mktemp("engines"))


def test_race_is_shown_first_with_its_source(page: Any, launches: Path) -> None:
    page.goto(launches.as_uri())
    assert page.inner_text("#summary") == "2 launches: 1 races in 1, 0 not analysed, 0 vacuous, 1 proved race-free"
    assert page.inner_text("#detail h2") == "add_overlapping races"
    assert page.inner_text(".finding h3") == "RF001 write-write between programs on out[128]"
    assert "tl.store(out + offsets" in page.inner_text("pre .hit")


def test_map_reads_out_the_racing_element_and_its_neighbours(page: Any, launches: Path) -> None:
    page.goto(launches.as_uri())
    page.click("text=Racing element")
    told = page.inner_text(".map .readout")
    assert told == (
        "out[128], the racing element: written by several programs; program (0, 0, 0) writes it; program (1, 0, 0) writes it"
    )
    page.focus(".map canvas")
    page.keyboard.press("ArrowLeft")
    assert page.inner_text(".map .readout") == "out[127]: written by program (0, 0, 0); program (0, 0, 0) writes it"


def test_zooming_in_and_out(page: Any, launches: Path) -> None:
    page.goto(launches.as_uri())
    cell = "document.querySelector('.map').view.cell"
    page.click("text=Whole tensor")
    least = page.evaluate(cell)
    page.focus(".map canvas")
    for _ in range(12):
        page.keyboard.press("+")
    assert page.evaluate(cell) == 48
    page.keyboard.press("0")
    assert page.evaluate(cell) == least


def test_colours_of_the_map(page: Any, launches: Path) -> None:
    """Elements of one program and contested ones are painted differently, unwritten ones not at all."""
    page.goto(launches.as_uri())
    page.click("text=Whole tensor")
    shades = page.evaluate(
        """() => {
          const canvas = document.querySelector('.map canvas'), view = document.querySelector('.map').view;
          const ratio = canvas.width / canvas.clientWidth, cell = view.cell * canvas.clientWidth / view.width;
          const at = (e) => [...canvas.getContext('2d').getImageData(
            ((e % view.columns) + 0.5) * cell * ratio, (Math.floor(e / view.columns) + 0.5) * cell * ratio, 1, 1).data];
          return [at(5), at(300), at(1010)];
        }"""
    )
    assert shades[0][3] == 255
    assert shades[1] == [205, 30, 30, 255]
    assert shades[2][3] == 0


def test_filter_and_choosing_another_launch(page: Any, launches: Path) -> None:
    page.goto(launches.as_uri())
    page.fill("#filter", "race-free")
    assert page.inner_text("#shown") == "1 of 2 shown"
    page.click("#subjects button:visible")
    assert page.inner_text("#detail h2") == "add proved race-free"
    assert "Proved for " in page.inner_text("#detail")
    page.fill("#filter", "no such kernel")
    assert page.inner_text("#shown") == "0 of 2 shown"


def test_engine_timeline(page: Any, engines: Path) -> None:
    page.goto(engines.as_uri())
    assert page.inner_text(".finding h3") == "RF102 read-write between engines on a (SBUF, partition 0, byte 0)"
    assert page.inner_text(".timeline .readout").startswith("I-1: Matmult on PE, step ")
    page.focus(".timeline canvas")
    page.keyboard.press("ArrowUp")
    assert " on SP, " in page.inner_text(".timeline .readout")
    page.fill(".timeline input", "matmult")
    assert page.inner_text(".timeline .readout").startswith("I-1: Matmult on PE")
    assert page.inner_text(".timeline [aria-pressed=true]") == "WAR I-1 / I-3"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_both_schemes(page: Any, launches: Path, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(launches.as_uri())
    ink, ground = page.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )

    def light(colour: str) -> float:
        return sum(int(part) for part in colour.removeprefix("rgb(").removesuffix(")").split(",")) / 3

    assert abs(light(ink) - light(ground)) > 150
    assert (light(ground) > 128) is (scheme == "light")


def test_a_hundred_thousand_instructions(page: Any, tmp_path: Path) -> None:
    count, engines = 100_000, 6
    timeline = {
        "engines": [f"E{engine}" for engine in range(engines)],
        "engine": [index % engines for index in range(count)],
        "at": [index // engines for index in range(count)],
        "names": [f"I-{index}" for index in range(count)],
        "opcodes": ["Copy", "Matmult"],
        "opcode": [index % 2 for index in range(count)],
        "edges": [[index, index + 1] for index in range(0, count - 1, 5)],
        "races": [{"first": 50_000, "second": 50_001, "after": 49_000, "until": 52_000, "type": "WAW", "byte": 0}],
    }
    timeline["races"][0] |= {"partition": 0, "buffer": "a", "bytes": [[], []]}
    subject = Subject("engine program", "big", Status.RACES, records={"timeline": timeline})
    path = tmp_path / "big.html"
    path.write_text(html.render(Report("0", "/", (subject,))), encoding="utf-8")
    page.goto(path.as_uri())
    assert page.inner_text(".timeline .readout").startswith("I-50000: Copy on E2, step 8333")
    milliseconds = page.evaluate(
        """() => {
          const view = document.querySelector('.timeline').view, start = performance.now();
          view.whole(); for (let k = 0; k < 10; k++) view.zoom(1.5); view.go(99999);
          return (performance.now() - start) / 12;
        }"""
    )
    assert page.inner_text(".timeline .readout").startswith("I-99999: Matmult on E3")
    assert milliseconds < 250
