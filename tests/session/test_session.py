"""The Python interface: analyze, trace, save and load, and what a launch leaves stale for the next one."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import pytest
import torch
import triton
import triton.language as tl

import racefree
from racefree.access import Site
from racefree.report.live import LiveReport


@triton.jit
def fill(out, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    offsets = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.program_id(0), mask=offsets < n)


@triton.jit
def scatter(out, index, BLOCK: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + tl.load(index + lanes), 1.0)


@triton.autotune([triton.Config({"STEP": 16}), triton.Config({"STEP": 8})], key=["n"])
@triton.jit
def tuned(out, n, BLOCK: tl.constexpr, STEP: tl.constexpr):
    offsets = tl.program_id(0) * STEP + tl.arange(0, BLOCK)
    tl.store(out + offsets, tl.program_id(0), mask=offsets < n)


@pytest.fixture(autouse=True)
def _fresh_launches() -> Iterator[None]:
    racefree.launches.clear()
    yield
    racefree.launches.clear()


def ints() -> torch.Tensor:
    return torch.zeros(64, dtype=torch.int32)


def test_analyze_proves_and_refutes() -> None:
    clean = racefree.analyze(fill, ints(), 64, grid=(4,), BLOCK=16, STEP=16)
    racy = racefree.analyze(fill, ints(), 64, grid=(4,), BLOCK=16, STEP=8)
    assert (clean.verdict.status, racy.verdict.status) == ("ok", "races")
    assert clean.records == (clean.verdict,)
    *races, verdict = racy.records
    assert verdict is racy.verdict
    assert [(race.race_type, race.first.tensor, race.first.source[2]) for race in races] == [("WAW", "out", "fill")]
    assert races[0].first.element == races[0].second.element
    assert racefree.launches == [clean, racy]


def test_contents_decide_and_are_named() -> None:
    out, apart = torch.zeros(64), torch.randperm(64).to(torch.int32)
    clean = racefree.analyze(scatter, out, apart, grid=(4,), BLOCK=16)
    assert clean.verdict.status == "ok"
    assert "reads tensor contents" in clean.verdict.qualifiers
    repeated = apart.clone()
    repeated[3] = repeated[60]
    assert racefree.analyze(scatter, out, repeated, grid=(4,), BLOCK=16).verdict.status == "races"


def test_worst_config_decides() -> None:
    launch = racefree.analyze(tuned, ints(), 64, grid=(4,), BLOCK=16)
    found = {config.config["STEP"]: config.status.value for config in launch.verdict.configs}
    assert found == {16: "ok", 8: "races"}
    assert launch.verdict.status == "races"
    assert {race.config["STEP"] for race in launch.races} == {8}


def test_contents_an_unrun_kernel_would_have_written_are_stale() -> None:
    detector = racefree.RaceDetector(compile=True, on_launch=lambda launch: None)
    index, other = ints(), torch.arange(64, dtype=torch.int32)
    with racefree.trace(detector):
        fill[(4,)](index, 64, BLOCK=16, STEP=16)
        scatter[(4,)](torch.zeros(64), index, BLOCK=16)
        scatter[(4,)](torch.zeros(64), other, BLOCK=16)
    stale, fresh = racefree.launches[1:]
    refusal = stale.verdict.configs[0].refusal
    assert stale.verdict.status == "unsupported"
    assert refusal is not None
    assert "an earlier launch of fill" in refusal.reason
    assert fresh.verdict.status == "ok"


def test_trace_as_decorator_of_kernel_and_function() -> None:
    detector = racefree.RaceDetector(compile=True, on_launch=lambda launch: None)
    racefree.trace(detector)(fill)[(4,)](ints(), 64, BLOCK=16, STEP=8)

    @racefree.trace(detector)
    def work(step: int) -> str:
        fill[(4,)](ints(), 64, BLOCK=16, STEP=step)
        return "done"

    assert work(16) == "done"
    assert [launch.verdict.status.value for launch in racefree.launches] == ["races", "ok"]


def test_live_report_tells_each_thing_once() -> None:
    stream = io.StringIO()
    x = ints()
    with racefree.trace(racefree.RaceDetector(compile=True, on_launch=LiveReport(stream))):
        for _ in range(2):
            fill[(4,)](x, 64, BLOCK=16, STEP=8)
        fill[(4,)](x, 64, BLOCK=16, STEP=16)
    assert stream.getvalue().count("RACE RF001") == 1
    assert "proved" not in stream.getvalue()


def test_saved_launches_read_back_as_they_were(tmp_path: Path) -> None:
    racefree.analyze(fill, ints(), 64, grid=(4,), BLOCK=16, STEP=8)
    racefree.analyze(scatter, torch.zeros(64), torch.zeros(64), grid=(4,), BLOCK=16)
    racefree.save(tmp_path / "launches.json")
    assert racefree.load(tmp_path / "launches.json") == racefree.launches


def example(kind: Any, depth: int = 0) -> Any:
    """A value of an annotated type in which no field, at any depth, is empty."""
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return kind(**{field.name: example(hints[field.name], depth + 1) for field in dataclasses.fields(kind)})
    of = get_args(kind)
    if get_origin(kind) is tuple:
        if of[-1] is not ...:
            return tuple(example(each, depth) for each in of)
        return () if of[0] is Site and depth > 14 else (example(of[0], depth + 1),)
    if type(None) in of:
        return example(of[0], depth)
    if get_origin(kind) is dict:
        return {"BLOCK": 16, "list": [1]}
    if issubclass(kind, Enum):
        return list(kind)[-1]
    return {bool: True, int: 7, float: 0.5, str: "text"}[kind]


def test_every_field_survives(tmp_path: Path) -> None:
    launch = example(racefree.Launch)
    assert launch.verdict.configs[0].replay.reason == "text"
    assert launch.maps[0].programs[0].written == ((7, 7),)
    assert launch.races[0].first.callers[0].callers[0].line == 7
    racefree.save(tmp_path / "launches.json", [launch])
    (back,) = racefree.load(tmp_path / "launches.json")
    assert back == launch
    assert back.records == launch.records


def test_what_an_older_version_saved_is_read() -> None:
    racy, clean, unknown = racefree.load(Path(__file__).parent / "saved" / "verdicts-1.json")
    assert [launch.verdict.status.value for launch in (racy, clean, unknown)] == ["races", "ok", "unsupported"]
    assert racy.races[0].first.callers == (Site("/somewhere/kernels.py", 12, 0, "racy"),)
    assert racy.races[0].first.source == ("/somewhere/kernels.py", 7, "")
    assert clean.verdict.scope is racefree.ProofScope.ANY_PARAMS_ANY_GRID
    assert unknown.verdict.configs[0].refusal is not None


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (3, "this racefree-verdicts has schema 3, and this racefree reads up to 2: use a newer racefree"),
        (0, "this racefree-verdicts is damaged: its schema number is 0"),
        ("2", "this racefree-verdicts is damaged: its schema number is '2'"),
        (True, "this racefree-verdicts is damaged: its schema number is True"),
    ],
)
def test_other_schemas_are_told_in_one_line(schema: object, said: str, tmp_path: Path) -> None:
    path = tmp_path / "launches.json"
    path.write_text(json.dumps({"kind": "racefree-verdicts", "schema": schema, "value": [{"from": "the future"}]}))
    with pytest.raises(racefree.InputError) as raised:
        racefree.load(path)
    assert str(raised.value) == f"{path}: {said}"


def test_loading_something_else_says_so(tmp_path: Path) -> None:
    with pytest.raises(racefree.InputError, match="cannot read"):
        racefree.load(tmp_path / "missing.json")
    (tmp_path / "other.json").write_text("{}")
    with pytest.raises(racefree.InputError, match="no racefree-verdicts"):
        racefree.load(tmp_path / "other.json")


def test_disabled_detector_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_RACE_DETECTOR", "0")
    detector = racefree.RaceDetector(compile=True)
    assert isinstance(detector, racefree.NullRaceDetector)
    with racefree.trace(detector):
        pass
    assert racefree.launches == []


def test_only_compiled_kernels_are_analysed() -> None:
    launch = racefree.analyze(print, grid=(1,))
    assert launch.verdict.status == "unsupported"
    assert launch.verdict.configs[0].refusal.kind == "no-compiled-kernel"


def test_strict_lanes_drop_the_qualifier() -> None:
    def status(lanes: str) -> tuple[str, tuple[str, ...]]:
        launch = racefree.analyze(
            store_then_load, torch.zeros(256), torch.zeros(256), grid=(1,), BLOCK=256, lanes=lanes
        )
        return launch.verdict.status.value, launch.verdict.qualifiers

    assert status("default") == ("ok", ("assumes one thread per lane",))
    assert status("strict") == ("races", ())


@triton.jit
def store_then_load(x, out, BLOCK: tl.constexpr):
    lanes = tl.arange(0, BLOCK)
    tl.store(x + lanes, lanes)
    tl.store(out + lanes, tl.load(x + lanes))
