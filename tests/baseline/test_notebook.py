"""What a notebook shows: well-formed, self-contained, escaped, and with the figures of the answer."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from racefree.access import Site
from racefree.errors import Refusal
from racefree.launch import ArgumentSummary, Launch
from racefree.verdict import CompiledRaceRecord, ProofScope, RaceAccess, RaceConfigVerdict, RaceVerdict, Status


@pytest.fixture
def race(tmp_path: Path) -> CompiledRaceRecord:
    file = tmp_path / "kernels.py"
    file.write_text("\n    tl.store(out + i, a < b)\n")
    access = RaceAccess("store", True, False, "out", (str(file), 2, "k"), 64, (32,))
    return CompiledRaceRecord(
        "WAW",
        access,
        replace(access, lane=(0,)),
        ((0, 0, 0), (1, 0, 0)),
        "any order & any time",
        {"BLOCK": 32},
        hint="mask < the tail",
    )


def verdict(status: Status, *configs: RaceConfigVerdict, **rest: object) -> RaceVerdict:
    scope = ProofScope.ANY_PARAMS_ANY_GRID if status is Status.OK else None
    return RaceVerdict(status, scope, (), configs, memory_model="triton 3.8 cuda", **rest)  # type: ignore[arg-type]


def text_of(shown: str) -> str:
    """The words of the HTML. It is well-formed, and loads, links and runs nothing."""
    assert not any(word in shown for word in ("http", "<script", "url(", "<link", "<img"))
    return "".join(ElementTree.fromstring(shown).itertext())


def test_race(race: CompiledRaceRecord) -> None:
    said = text_of(race._repr_html_())
    assert "RF001 write-write between programs (config BLOCK=32)" in said
    assert "store of out[64] by program (0, 0, 0), lane 32" in said
    assert "store of out[64] by program (1, 0, 0), lane 0" in said
    assert said.count("tl.store(out + i, a < b)") == 2
    assert "why: any order & any time" in said
    assert "hint: mask < the tail" in said


def test_proof() -> None:
    proved = replace(verdict(Status.OK), qualifiers=("reads tensor contents", "assumes termination"))
    said = text_of(proved._repr_html_())
    assert said.startswith("ok proved race-free for any-params-any-grid; reads tensor contents, assumes termination")
    assert "memory model: triton 3.8 cuda" in said


def test_what_was_not_analysed_claims_nothing() -> None:
    refusal = Refusal("indirect-address", "index is <unknown>", Site("k.py", 7))
    refused = RaceConfigVerdict({"BLOCK": 16}, Status.UNSUPPORTED, refusal=refusal)
    said = text_of(verdict(Status.UNSUPPORTED, refused)._repr_html_())
    assert "unsupported not analysed, nothing is claimed" in said
    assert "indirect-address: index is <unknown> (config BLOCK=16) k.py:7" in said
    assert "proved" not in said
    empty = RaceConfigVerdict({}, Status.VACUOUS)
    assert "vacuous nothing can execute, nothing is claimed" in text_of(verdict(Status.VACUOUS, empty)._repr_html_())


def test_launch(race: CompiledRaceRecord) -> None:
    many = RaceConfigVerdict({}, Status.RACES, races=(race,) * 12)
    launch = Launch(
        kernel="shift<1>",
        site=Site("k.py", 7),
        launch_site=None,
        grid=(4, 1, 1),
        target="cuda:80",
        arguments=(ArgumentSummary("x", "int32[128] strides (1,)"),),
        verdict=verdict(Status.RACES, many, notes=("seen <once>",)),
    )
    said = text_of(launch._repr_html_())
    assert said.startswith(
        "shift<1> k.py:7grid (4, 1, 1), target cuda:80x: int32[128] strides (1,)races this launch races"
    )
    assert "note: seen <once>" in said
    assert said.count("RF001") == 10
    assert said.endswith("and 2 more races")
    assert len(launch._repr_html_()) < 20_000


def luminance(colour: str) -> float:
    """Relative luminance of `#rrggbb`, as the accessibility guidelines of the web define it."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("status", list(Status))
def test_colours_stand_out_from_white_and_from_black(status: Status) -> None:
    shown = verdict(status)._repr_html_()
    colours = set(re.findall("#[0-9a-f]{6}", shown))
    assert colours
    for colour in colours:
        assert 1.05 / (luminance(colour) + 0.05) > 4.3, colour
        assert (luminance(colour) + 0.05) / 0.05 > 4.3, colour
    assert "background:#" not in shown
