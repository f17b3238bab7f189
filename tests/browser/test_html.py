"""The HTML report in a real browser: reports of real runs are opened, clicked, zoomed and read."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from racefree.access import Dim, Pattern, Site
from racefree.cli import racefree_command
from racefree.engines.builder import ProgramBuilder
from racefree.engines.check import check
from racefree.engines.program import AccessFlag, EngineProgram, MemoryKind
from racefree.engines.records import EngineVerdict
from racefree.report import engine_programs, html
from racefree.report.engine_timeline import timeline
from racefree.report.model import Gap, Report, Subject
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
    assert page.inner_text("pre .hit mark") == "tl.store"
    assert page.locator(".arithmetic").all_inner_texts() == [
        "at pid*128 + lane = 0*128 + 128 = 128",
        "at pid*128 + lane = 1*128 + 0 = 128",
    ]


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
    """An element of one program has one colour, a contested one stripes of red, an unwritten one none."""
    page.goto(launches.as_uri())
    page.click("text=Whole tensor")
    shades = page.evaluate(
        """() => {
          const canvas = document.querySelector('.map canvas'), view = document.querySelector('.map').view;
          const ratio = canvas.width / canvas.clientWidth, cell = view.cell * canvas.clientWidth / view.width * ratio;
          const colours = (e) => {
            const size = Math.floor(cell) - 4, x = (e % view.columns) * cell + 3, y = Math.floor(e / view.columns) * cell + 3;
            const data = canvas.getContext('2d').getImageData(x, y, size, size).data, found = new Set();
            for (let at = 0; at < data.length; at += 4) found.add(data.slice(at, at + 4).join());
            return [...found];
          };
          return [colours(5), colours(300), colours(600), colours(1010)];
        }"""
    )
    assert len(shades[0]) == 1
    assert [("110,0,0,255" in shade, len(shade)) for shade in shades[1:3]] == [(True, 2), (True, 2)]
    assert set(shades[1]) != set(shades[2])
    assert shades[3] == ["0,0,0,0"]


MATRIX = """
import torch
import triton
import triton.language as tl


@triton.jit
def tiles(x, out, ld, BLOCK: tl.constexpr):
    rows, columns = tl.program_id(0) * 8 + tl.arange(0, 8), tl.program_id(1) * 8 + tl.arange(0, BLOCK)
    tl.store(out + rows[:, None] * ld + columns[None, :], 1.0, mask=columns[None, :] < ld)


@triton.jit
def shifted(out, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + lanes + 1, tl.load(out + lanes))


@triton.jit
def walk(out, BLOCK: tl.constexpr):
    places = out + tl.program_id(0) * 4 * BLOCK + tl.arange(0, BLOCK)
    for _ in range(5):
        tl.store(places, 1.0)
        places += BLOCK


out = torch.zeros(32, 48, device="cuda")
tiles[(4, 6)](out, out, 48, BLOCK=16)
shifted[(3,)](out, BLOCK=256)
walk[(3,)](out, BLOCK=32)
"""


@pytest.fixture(scope="module")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("matrices")
    script = folder / "matrix.py"
    script.write_text(MATRIX, encoding="utf-8")
    return report_of(script, folder)


def choose(page: Any, name: str) -> None:
    page.click(f"#subjects button:has-text('{name}')")
    assert page.inner_text("#detail h2").startswith(name)


def test_matrix_is_read_by_row_and_column(page: Any, matrices: Path) -> None:
    page.goto(matrices.as_uri())
    choose(page, "tiles")
    page.click("text=Racing element")
    assert page.inner_text(".map .readout").startswith(
        "out[8] at [0, 8], the racing element: written by several programs"
    )
    page.focus(".map canvas")
    page.keyboard.press("ArrowDown")
    assert page.inner_text(".map .readout").startswith("out[56] at [1, 8]: ")


def test_footprints_are_those_of_the_chosen_race(page: Any, matrices: Path) -> None:
    """A race between two programs shows both side by side, one inside a program its own."""
    page.goto(matrices.as_uri())
    choose(page, "shifted")
    titles = ".pair div:visible p"
    shown = {}
    for box in page.locator(".finding").all():
        box.locator("text=Show on the map").click()
        shown[box.locator("h3").inner_text().split(" on ")[0]] = page.locator(titles).all_inner_texts()
    assert shown["RF004 read-write inside one program"] == ["program (0, 0, 0)"]
    assert shown["RF002 read-write between programs"] == ["program (1, 0, 0)", "program (0, 0, 0)"]


def test_race_of_a_loop(page: Any, matrices: Path) -> None:
    page.goto(matrices.as_uri())
    choose(page, "walk")
    told = page.locator(".arithmetic").all_inner_texts()
    assert told[0] == "at pid*128 + lane + iteration*32 = 0*128 + 0 + 4*32 = 128"
    assert "iteration 4" in page.locator(".said").first.inner_text()


def test_a_clean_launch_has_a_map_without_red(page: Any, launches: Path) -> None:
    page.goto(launches.as_uri())
    page.click("#subjects button:has-text('proved race-free')")
    page.click("text=Whole tensor")
    assert page.inner_text(".map .readout") == "out[0]: written by program (0, 0, 0)"
    assert page.locator(".pair").count() == 0
    assert page.evaluate("document.querySelector('.map').view.map.contested") == []


def test_everything_can_be_reached_by_keyboard(page: Any, launches: Path) -> None:
    page.goto(launches.as_uri())
    reached = []
    for _ in range(40):
        page.keyboard.press("Tab")
        name = page.evaluate(
            "(document.activeElement.getAttribute('aria-label') || document.activeElement.textContent).trim()"
        )
        reached.append(name)
        if name.startswith("What program (1, 0, 0)"):
            break
    for wanted in ("races add_overlapping", "Source at ", "About RF001", "Show on the map", "Zoom in", "Map of out"):
        assert any(name.startswith(wanted) for name in reached), (wanted, reached)
    page.locator("text=About RF001").focus()
    page.keyboard.press("Enter")
    assert page.locator("details[open]").count() == 1
    page.locator("text=Show on the map").focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "CANVAS"


def test_a_long_list_can_be_skipped(page: Any, many: Path) -> None:
    page.goto(many.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip the list"
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") == 0
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "detail"


def test_names_for_a_screen_reader(page: Any, launches: Path, engines: Path) -> None:
    page.goto(launches.as_uri())
    told = page.locator("body").aria_snapshot()
    for line in (
        '- navigation "What was checked":',
        '- searchbox "Filter"',
        '- heading "RF001 write-write between programs on out[128]" [level=3]',
        'application "Map of out: arrow keys move the cursor',
        'application "What program (0, 0, 0) touches of out"',
    ):
        assert line in told, told
    page.goto(engines.as_uri())
    told = page.locator("body").aria_snapshot()
    for line in (
        "Timeline: left and right go along an engine",
        'button "WAR I-1 / I-3" [pressed]',
        "- 'img \"a: partitions",
    ):
        assert line in told, told


@pytest.mark.parametrize("width", [360, 700, 1600])
def test_no_page_is_wider_than_its_window(page: Any, launches: Path, engines: Path, matrices: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 800})
    for report in (launches, engines, matrices):
        page.goto(report.as_uri())
        page.wait_for_timeout(50)
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_filter_and_choosing_another_launch(page: Any, launches: Path) -> None:
    page.goto(launches.as_uri())
    page.fill("#filter", "race-free")
    assert page.inner_text("#shown") == "1 of 2 shown"
    page.click("#subjects button:visible")
    assert page.inner_text("#detail h2") == "add proved race-free"
    assert "Proved for " in page.inner_text("#detail")
    page.fill("#filter", "no such kernel")
    assert page.inner_text("#shown") == "0 of 2 shown"


@pytest.mark.parametrize("width", [400, 1200])
def test_what_is_chosen_in_a_long_list_is_seen(page: Any, many: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 700})
    page.goto(many.as_uri())
    last = page.locator("#subjects button").last
    last.scroll_into_view_if_needed()
    last.click()
    top, bottom = page.evaluate(
        "(r => [r.top, r.bottom])(document.querySelector('#detail h2').getBoundingClientRect())"
    )
    assert 0 <= top < bottom <= 700
    assert page.evaluate("document.activeElement.textContent") == last.text_content()
    assert last.text_content() == "proved race-free kernel299 k.py:299 grid 300×2"
    page.fill("#filter", "n: 17;")
    assert page.inner_text("#shown") == "1 of 300 shown"


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """300 launches, none with a race."""
    subjects = tuple(
        Subject(
            "launch",
            f"kernel{n}",
            Status.OK,
            site=Site("/k.py", n),
            details=(f"n: {n};",),
            records={"grid": [n + 1, 2, 1]},
        )
        for n in range(300)
    )
    path = tmp_path_factory.mktemp("long") / "long.html"
    path.write_text(html.render(Report("0", "/", subjects)), encoding="utf-8")
    return path


def test_what_was_not_analysed_is_shown_with_its_source(page: Any, tmp_path: Path) -> None:
    gap = Gap("indirect-address", "the address is not known", Site("/k.py", 3, 5), "BLOCK=32")
    kernel = Subject("launch", "kernel", Status.UNSUPPORTED, site=Site("/k.py", 1), gaps=(gap,))
    lines = {"/k.py": {number: f"line {number}" for number in range(1, 7)}}
    path = tmp_path / "gap.html"
    path.write_text(html.render(Report("0", "/", (kernel,), sources=lines)), encoding="utf-8")
    page.goto(path.as_uri())
    assert page.inner_text("pre .hit").endswith("line 3")
    assert page.get_by_role("region", name="Source at k.py:3:5").count() == 1
    told = page.inner_text("#detail")
    assert "k.py:3:5: indirect-address: the address is not known (config BLOCK=32)" in told


def test_engine_timeline(page: Any, engines: Path) -> None:
    page.goto(engines.as_uri())
    assert page.inner_text(".finding h3") == "RF102 read-write between engines on a (SBUF, partition 0, byte 0)"
    assert page.inner_text(".timeline .readout").startswith("I-1: Matmult on PE, step ")
    told = "at partition p = 0 (p < 128), byte i*4 + b = 0*4 + 0 = 0 (i < 512, b < 4)"
    assert page.locator(".arithmetic").all_inner_texts() == [told, told]
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


CONTRAST = """() => {
  const parts = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const ratio = (a, b) => {
    const [dark, light] = [luminance(a.slice(0, 3)), luminance(b.slice(0, 3))].sort((x, y) => x - y);
    return (light + 0.05) / (dark + 0.05);
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
  };
  const told = [], ground = parts(getComputedStyle(document.body).backgroundColor);
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.getClientRects().length) continue;
    const found = ratio(parts(getComputedStyle(element).color), behind(element));
    if (found < 4.5) told.push([walker.currentNode.data, found]);
  }
  const { wrote, loaded } = palette(), marks = [[wrote, ground], [loaded, ground], [wrote, loaded]];
  for (let owner = 0; owner < 100; owner++) {
    const colour = ownerColour(owner);
    marks.push([colour, ground], [colour, RACE], [colour, SHARED]);
  }
  for (const [one, other] of marks) if (ratio(one, other) < 3) told.push([one, other, ratio(one, other)]);
  return told;
}"""
"""Text that is less than 4.5 to 1 against what is behind it, and marks of the map less than 3 to 1 (WCAG 2.2, level AA)."""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page: Any, launches: Path, engines: Path, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)
    for report in (launches, engines):
        page.goto(report.as_uri())
        assert page.evaluate(CONTRAST) == []


def test_map_follows_the_scheme(page: Any, launches: Path) -> None:
    colours = []
    page.goto(launches.as_uri())
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        page.click("text=Whole tensor")
        colours.append(
            page.evaluate("[...document.querySelector('.map canvas').getContext('2d').getImageData(4, 4, 1, 1).data]")
        )
        assert colours[-1] == page.evaluate("[...ownerColour(0), 255]")
    assert colours[0] != colours[1]


def test_printed(page: Any, launches: Path) -> None:
    page.set_viewport_size({"width": 600, "height": 800})
    page.goto(launches.as_uri())
    page.emulate_media(media="print")
    assert not page.is_visible("nav")
    assert not page.is_visible("text=Zoom in")
    assert page.is_visible(".finding h3")
    assert page.evaluate("[...document.querySelectorAll('pre')].every((each) => each.scrollWidth <= each.clientWidth)")


def test_without_scripts(browser: Any, launches: Path) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(launches.as_uri())
    assert page.inner_text("#summary").startswith("2 launches: 1 races in 1")
    assert "scripts are switched off" in page.inner_text("header")
    page.close()


def test_window_of_a_race_is_told_in_words(page: Any, engines: Path) -> None:
    page.goto(engines.as_uri())
    assert page.inner_text(".timeline .window") == (
        "Shaded: what may run at the same time. On PE from its start, since no more of it is known to be complete when I-3 "
        "starts; on SP from I-3 until I-4, which starts only after I-1."
    )


def test_bytes_that_both_touch_have_a_colour_of_their_own(page: Any, engines: Path) -> None:
    page.goto(engines.as_uri())
    middle = page.evaluate(
        """() => {
          const canvas = document.querySelector('.timeline canvas[role=img]');
          return [...canvas.getContext('2d').getImageData(canvas.width / 2, canvas.height / 2, 1, 1).data];
        }"""
    )
    assert middle == [190, 75, 110, 255]


def test_a_hundred_thousand_instructions(page: Any, tmp_path: Path) -> None:
    """A real check of a program of this size, with a race in its middle: zooming, moving and searching stay smooth."""
    program, verdict = big_program(100_000)
    subject = engine_programs.subject(verdict, file="big.json")
    records = subject.records | {"timeline": timeline(program, verdict)}
    path = tmp_path / "big.html"
    path.write_text(html.render(Report("0", "/", (replace(subject, records=records),))), encoding="utf-8")
    page.goto(path.as_uri())
    assert page.inner_text(".timeline .readout").startswith("I-50000: Copy on E2, step ")
    milliseconds = page.evaluate(
        """() => {
          const view = document.querySelector('.timeline').view, times = [];
          const timed = (act) => { const start = performance.now(); act(); times.push(performance.now() - start); };
          view.whole();
          for (let k = 0; k < 20; k++) timed(() => view.zoom(1.5));
          for (let k = 0; k < 20; k++) timed(() => view.pan(5));
          for (let k = 0; k < 20; k++) timed(() => view.zoom(1 / 1.5));
          timed(() => view.find("i-9999")); timed(() => view.go(99999));
          return times.sort((a, b) => a - b)[times.length >> 1];
        }"""
    )
    assert page.inner_text(".timeline .readout").startswith("I-99999: Copy on E3")
    assert milliseconds < 50


def big_program(count: int) -> tuple[EngineProgram, EngineVerdict]:
    """Copies on six engines, each after the one before it, but for one that waits for nothing and meets its neighbour."""
    builder = ProgramBuilder("big")
    engines = [builder.engine(f"E{engine}") for engine in range(6)]
    space = builder.space(MemoryKind.SBUF, "sb")
    buffer = builder.buffer("a", space)
    tiles = [builder.footprint(space, Pattern(512 * k, 512), Pattern(0, 1, (Dim(1, 128),))) for k in range(64)]
    for index in range(count):
        row = builder.instruction(f"I-{index}", "Copy", engines[index % 6])
        if index and index != 50_001:
            builder.depends(row, index - 1)
        tile = tiles[50_000 % 64] if index == 50_001 else tiles[index % 64]
        builder.access(row, tile, buffer, AccessFlag.WRITE)
    program = builder.build()
    return program, check(program, order="dependencies")
